"""The list of commands, with the first line of the help of each; nothing is imported here."""

COMMANDS = {
    "run": "Run trials: a trained agent meets a novelty, with or without adaptation.",
    "list": "List domains, agents, methods, detectors and what else can be named.",
    "report": "Compare runs in a table, a picture and an HTML page.",
    "figure": "Draw a figure from run folders.",
    "replay": "Repeat one trial of a run, check its rows and print its principles as rules.",
    "export": "Convert a run to SB3's Monitor files, WSU's columns or TensorBoard.",
    "play": "Watch a frozen and an adapting agent side by side in the browser, and change the world under them.",
    "record": "Film a frozen and an adapting agent side by side while the world changes.",
    "train": "Train an agent in any gymnasium environment, or a shipped one from its recipe.",
    "convert": "Convert a zip of SB3's DQN or PPO to an agent as this package ships them.",
    "paper": "Run the paper's whole evaluation, then write its figures, pages and claims.",
    "claims": "Check the paper's quantitative claims against your runs.",
    "bench": "Measure the speed of every domain and method, of the engine and of the learners.",
    "doctor": "Check the installation: versions, extras, the cache of kernels, and a short run.",
    "birds serve": "Serve agents that speak the Science Birds protocol.",
    "birds external": "Start an agent that speaks the Science Birds protocol, supervise it and score it.",
    "birds play": "Play Angry Birds levels with the mouse, or watch an agent.",
    "birds levels": "Write Angry Birds levels as XML files or as one picture.",
    "birds accept": "Test whether Angry Birds levels need a trained agent.",
}
"""Every command and its one-line help; `birds play` is class `Play` in `nappingrl.cli.birds.play`."""

TOPICS = {
    "birds": "Play, serve and write Angry Birds levels.\n\nExample: napping birds play --novelty bone",
}
"""Words that stand before several commands."""

GROUPS = {
    "experiments": ("run", "list", "report", "figure", "replay", "export"),
    "watch": ("play", "record"),
    "agents": ("train", "convert"),
    "the paper": ("paper", "claims"),
    "Angry Birds": ("birds",),
    "this installation": ("doctor", "bench"),
}
"""The commands as `napping --help` groups them."""
