"""The bytes of requests and replies against layouts written by hand."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nappingrl.domains.angrybirds.server.protocol import MESSAGES, Code, Likelihood, ProtocolError, Request, State
from nappingrl.domains.angrybirds.server.wire import (
    Need,
    encode_batch,
    encode_numbers,
    encode_picture,
    encode_request,
    encode_scores,
    encode_sized,
    parse_batch,
    parse_numbers,
    parse_picture,
    parse_request,
    parse_scores,
    parse_sized,
    run_parser,
)

BYTES = {
    Request(Code.CONFIGURE, (23349, 1)): "01 00005b35 01",
    Request(Code.SET_SPEED, (50,)): "02 00000032",
    Request(Code.SCREENSHOT): "0b",
    Request(Code.STATE): "0c",
    Request(Code.SHOOT, (-5, 400, 0, 1000)): "1f fffffffb 00000190 00000000 000003e8",
    Request(Code.SHOOT_SEQUENCE, (31, 1, 2, 0, 3, 32, 4, 5, 0, 6)): (
        "21 02 1f 00000001 00000002 00000000 00000003 20 00000004 00000005 00000000 00000006"
    ),
    Request(Code.SHOOT_AND_RECORD, (1, 2, 3, 4, 5)): "26 00000001 00000002 00000003 00000004 00000005",
    Request(Code.SHOOT_AND_RECORD, (1, 2, 3, 4, 5, 1)): "26 00000001 00000002 00000003 00000004 00000005 00000001",
    Request(Code.FAST_SHOOT, (1, 2, 3, 4)): "29 00000001 00000002 00000003 00000004",
    Request(Code.FAST_SHOOT, (1, 2, 3, 4, 5, 6)): "29 00000001 00000002 00000003 00000004 00000005 00000006",
    Request(Code.LOAD_LEVEL, (7,)): "33 00000007",
    Request(Code.NEXT_LEVEL): "35",
    Request(Code.REPORT_LIKELIHOOD, likelihood=Likelihood(0.5, 0.25, (-2,), 1, "é")): (
        "42 3f000000 3e800000 00000001 fffffffe 00000001 00000002 c3a9"
    ),
    Request(Code.REPORT_LIKELIHOOD, likelihood=Likelihood(1.0, 0.0, (), 0, "", (2.0,))): (
        "42 3f800000 00000000 00000000 00000000 00000000 00000001 40000000"
    ),
    Request(Code.REPORT_DESCRIPTION, text="new"): "43 00000003 6e6577",
    Request(Code.READY_FOR_NEW_SET): "44",
    Request(Code.BATCH_TRUTH, (10, 300)): "46 0000000a 0000012c",
    Request(Code.NOVELTY_HINT, (1,)): "48 00000001",
}


def read(data: bytes):
    """A reader of these bytes: what is optional comes if there are bytes left."""
    left = bytearray(data)

    def take(need: Need) -> bytes:
        if need.is_optional and not left:
            return b""
        if len(left) < need.n_bytes:
            raise EOFError
        taken = bytes(left[: need.n_bytes])
        del left[: need.n_bytes]
        return taken

    return take, left


def parse(parser, data: bytes):
    take, left = read(data)
    parsed = run_parser(parser, take)
    assert not left
    return parsed


@pytest.mark.parametrize(("request_", "bytes_"), BYTES.items(), ids=[request.code.name for request in BYTES])
def test_requests_have_these_bytes_and_are_read_from_them(request_: Request, bytes_: str) -> None:
    data = bytes.fromhex(bytes_)
    assert encode_request(request_) == data
    assert parse(parse_request(), data) == request_


def test_the_table_has_every_code_and_the_codes_are_those_of_the_original() -> None:
    assert set(MESSAGES) == set(Code)
    assert sorted(Code) == [
        1, 2, 11, 12, 14, 15, 23, 31, 32, 33, 34, 35, 36, 38, 41, 42, 43, 51, 52, 53, 61, 62, 63, 64, 65, 66, 67, 68,
        69, 70, 71, 72,
    ]  # fmt: skip
    assert [state.value for state in State] == list(range(14))


INTS = st.integers(-(2**31), 2**31 - 1)
FLOATS = st.floats(width=32, allow_nan=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LIKELIHOODS = st.builds(
    Likelihood, FLOATS, FLOATS, st.lists(INTS, max_size=5).map(tuple), INTS, TEXTS,
    st.none() | st.lists(FLOATS, max_size=9).map(tuple),
)  # fmt: skip


@st.composite
def requests(draw: st.DrawFn) -> Request:
    code = draw(st.sampled_from(Code))
    layout = MESSAGES[code]
    if layout.request == "likelihood":
        return Request(code, likelihood=draw(LIKELIHOODS))
    if layout.request == "text":
        return Request(code, text=draw(TEXTS))
    if layout.request == "shots":
        shot = st.tuples(st.sampled_from([31, 32]), INTS, INTS, INTS, INTS)
        return Request(code, tuple(number for shot in draw(st.lists(shot, max_size=16)) for number in shot))
    letters = layout.request + (layout.tail if draw(st.booleans()) else "")
    limits = {"i": INTS, "I": st.integers(0, 2**32 - 1), "B": st.integers(0, 255)}
    return Request(code, tuple(draw(limits[letter]) for letter in letters))


@given(requests())
def test_every_request_is_read_as_it_was_written(request_: Request) -> None:
    assert parse(parse_request(), encode_request(request_)) == request_


@given(requests(), st.data())
def test_a_request_that_is_cut_off_is_never_taken_for_a_whole_one(request_: Request, data: st.DataObject) -> None:
    whole = encode_request(request_)
    part = whole[: data.draw(st.integers(0, len(whole) - 1))]
    take, _ = read(part)
    try:
        parsed = run_parser(parse_request(), take)
    except EOFError:
        return
    # only the form without a tail is a beginning of the form with one
    assert encode_request(parsed) == part


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x00", "code 0 is not a request"),
        (b"\x0d", "code 13 is not a request"),
        (b"\xff", "code 255 is not a request"),
        (b"\x21\x11", "17 shots; allowed: 0 to 16"),
        (b"\x21\x01\x26" + bytes(16), "code 38 in a sequence of shots; allowed: 31, 32"),
        (b"\x42" + struct.pack(">ffi", 0, 1, -1), "-1 object ids; allowed: 0 to 4096"),
        (b"\x42" + struct.pack(">ffi", 0, 1, 2**31 - 1), "2147483647 object ids"),
        (b"\x42" + struct.pack(">ffiii", 0, 1, 0, 0, 65537), "65537 bytes of text; allowed: 0 to 65536"),
        (b"\x42" + struct.pack(">ffiiii", 0, 1, 0, 0, 0, 65), "65 hierarchy levels; allowed: 0 to 64"),
        (b"\x43" + struct.pack(">I", 2**32 - 1), "-1 bytes of text"),
    ],
)
def test_what_no_agent_sends_is_refused_before_it_is_read(data: bytes, message: str) -> None:
    take, _ = read(data)
    with pytest.raises(ProtocolError, match=message):
        run_parser(parse_request(), take)


def test_a_number_that_does_not_fit_cannot_be_sent() -> None:
    with pytest.raises(ProtocolError, match=r"4294967296.*cannot be sent"):
        encode_request(Request(Code.LOAD_LEVEL, (2**32,)))
    with pytest.raises(ProtocolError, match="17 shots; allowed: 0 to 16"):
        encode_request(Request(Code.SHOOT_SEQUENCE, (31, 0, 0, 0, 0) * 17))


def test_replies_have_the_lengths_that_clients_read() -> None:
    assert encode_numbers(Code.CONFIGURE, 1, 2, 3) == b"\1\2\3"
    assert encode_numbers(Code.STATE, State.WON) == b"\6"
    assert encode_numbers(Code.NOVELTY_INFO, -1) == b"\xff\xff\xff\xff"
    assert encode_numbers(Code.NEXT_LEVEL, 258) == b"\0\0\1\2"
    ready = encode_numbers(Code.READY_FOR_NEW_SET, 1, 2, 3, 4, 5, 6, 7)
    assert ready == bytes.fromhex("00000001 00000002 00000003 00000004 05 06 07")
    assert len(ready) == 19


def test_replies_of_variable_length() -> None:
    assert encode_sized(b"[]     ") == b"\0\0\0\7[]     "
    assert encode_batch([b"ab", b""]) == b"\0\0\0\2\0\0\0\2ab\0\0\0\0"
    assert encode_scores([5000, 1]) == bytes.fromhex("00000002 00001388 00000001")
    picture = np.arange(12, dtype=np.uint8).reshape(1, 4, 3)
    assert encode_picture(picture) == b"\0\0\0\4\0\0\0\1" + bytes(range(12))


def test_replies_are_read_as_they_were_written() -> None:
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    np.testing.assert_array_equal(parse(parse_picture(), encode_picture(picture)), picture)
    assert parse(parse_sized(), encode_sized(b"truth")) == b"truth"
    assert parse(parse_batch(), encode_batch([b"a", b"", b"bc"])) == [b"a", b"", b"bc"]
    assert parse(parse_scores(), encode_scores([1, 2, 3])) == (1, 2, 3)
    assert parse(parse_numbers("IB"), b"\0\0\1\0\7") == (256, 7)


@pytest.mark.parametrize(
    ("parser", "message"),
    [
        (parse_picture(), "a picture of 4294967295 x 4294967295 pixels"),
        (parse_sized(), "4294967295 bytes of ground truth"),
        (parse_batch(), "4294967295 records"),
        (parse_scores(), "4294967295 scores"),
    ],
)
def test_a_reply_of_absurd_size_is_refused_before_it_is_read(parser, message: str) -> None:
    take, _ = read(b"\xff" * 8)
    with pytest.raises(ProtocolError, match=message):
        run_parser(parser, take)
