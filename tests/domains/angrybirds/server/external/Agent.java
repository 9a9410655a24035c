import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileWriter;
import java.io.IOException;
import java.net.Socket;

/** An agent for Java that speaks the protocol by itself and always shoots high: java Agent.java PORT. */
public class Agent {
    private static final int PLAYING = 5, LIKELIHOOD = 12, TERMINATED = 13;

    private final DataInputStream in;
    private final DataOutputStream out;

    private Agent(Socket socket) throws IOException {
        socket.setTcpNoDelay(true);
        in = new DataInputStream(socket.getInputStream());
        out = new DataOutputStream(socket.getOutputStream());
    }

    public static void main(String[] arguments) throws IOException {
        try (Socket socket = new Socket("127.0.0.1", Integer.parseInt(arguments[0]));
                FileWriter file = new FileWriter("output.csv")) {
            int shots = new Agent(socket).play();
            file.write("shots\n" + shots + "\n");
            System.out.println("done after " + shots + " shots in " + System.getProperty("user.dir"));
        }
    }

    private int play() throws IOException {
        out.write(new byte[] {1, 0, 0, 0, 99, 1});
        in.readFully(new byte[3]);
        int shots = 0;
        while (true) {
            int state = ask(12).readUnsignedByte();
            if (state == TERMINATED) {
                return shots;
            } else if (state >= 8 && state <= 11) {
                ask(68).readFully(new byte[19]);
            } else if (state == LIKELIHOOD) {
                throw new IOException("nobody should ask for that here");
            } else if (state == PLAYING) {
                byte[] truth = new byte[ask(64).readInt()];
                in.readFully(truth);
                shots += shoot(-200, 600);
            } else {
                System.out.println("level " + ask(53).readInt());
            }
        }
    }

    private DataInputStream ask(int code) throws IOException {
        out.writeByte(code);
        return in;
    }

    private int shoot(int x, int y) throws IOException {
        java.nio.ByteBuffer message = java.nio.ByteBuffer.allocate(17);
        message.put((byte) 31).putInt(x).putInt(y).putInt(0).putInt(0);
        out.write(message.array());
        return in.readUnsignedByte();
    }
}
