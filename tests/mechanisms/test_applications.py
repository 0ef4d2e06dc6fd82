"""Applications in Python: the template, hooks and methods of processes, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import pytest

import eastwest as ew
from eastwest.errors import InputError
from eastwest.mechanisms import new, sketch
from eastwest.mechanisms.new import Kind
from eastwest.notes import unanswered
from eastwest.views import goals, summary
from project_paths import ROOT

FABRIC = (
    'schema = 1\n[fabric]\nkind = "star"\nhosts = 6\nhost_rate = "1 Gbit/s"\n'
    '[tcp]\nmin_rto = "10 ms"\ninitial_rto = "20 ms"\n'
)


def scenario(kind: str, more: str = "") -> str:
    """A scenario with one application."""
    return f'{FABRIC}[[workload]]\nkind = "{kind}"\nname = "app"\n{more}\n'


def own(result: ew.Result) -> dict[str, Any]:
    """Return the counters and measures of the application."""
    found: dict[str, Any] = result.summary["applications"]["app"]
    return found


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Change to an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_template_does_what_the_built_in_fan_out_does() -> None:
    made = new.write("my-service", Kind.application, python=True)
    text = (made.folder / "scenario.toml").read_text()
    sketched = ew.run(text, mechanisms=[made.folder / made.named])
    built_in = ew.run(text.replace('"my-service"\nname = "search"', '"fan-out"\nname = "search"'))
    assert sketched.digest == built_in.digest
    assert "docs/guide/own-application.md" in (made.folder / "README.md").read_text()
    both = [each.summary["applications"]["search"] for each in (sketched, built_in)]
    assert both[0]["query_us"] == both[1]["query_us"]
    assert both[0]["query_us"]["count"] == 200
    missed = [each["counters"]["missed"] for each in both]
    assert missed[0] == missed[1]


class Chain(ew.Application):
    """Application that passes an object from process to process."""

    hops: int = 7
    pause: ew.Duration = ew.Duration("1 ms")

    def on_start(self) -> None:
        if self.number == 0:
            self.send(1, 1000, {"hops": [0]})

    def on_message(self, message: ew.Message) -> None:
        self.count("bytes", message.bytes)
        assert message.sender == (self.number - 1) % len(self.hosts)
        message.data["hops"].append(self.number)
        self.timer(self.pause, message.data)

    def on_timer(self, data: Any) -> None:
        if len(data["hops"]) <= self.hops:
            self.send((self.number + 1) % len(self.hosts), 1000, data)
        else:
            self.count("hops", len(data["hops"]))
            self.measure("all", self.now_ps)


def test_objects_travel_with_messages_and_timers() -> None:
    result = ew.run(scenario("chain", 'hops = 9\npause = "2 ms"'), mechanisms=[Chain])
    assert own(result)["counters"] == {"bytes": 9000, "hops": 10}
    assert 9 * 2000 < own(result)["all_us"]["max"] < 9 * 2200
    assert result.summary["flows"]["completed"] == 9


def test_settings_have_units_and_ranges_of_their_types() -> None:
    with pytest.raises(ew.ScenarioError) as refused:
        ew.run(scenario("chain", 'hops = "many"\npause = 3\nhopps = 1'), mechanisms=[Chain])
    told = str(refused.value)
    assert "hops" in told
    assert "pause" in told
    assert "hopps" in told


class Asks(ew.Application):
    """Application that asks each server once and closes the connection."""

    roles: ClassVar = {"clients": "Hosts that ask.", "servers": "Hosts that respond."}

    def on_start(self) -> None:
        if self.role == "clients":
            self.number_of = {}
            for server in self.members["servers"]:
                self.number_of[self.request(server, 100, "question")] = server
                self.close(server)

    def on_message(self, message: ew.Message) -> None:
        if message.request is not None:
            assert message.data == "question"
            self.reply(message, 5000)
        else:
            assert message.answers is not None
            assert self.number_of[message.answers] == message.sender
            assert message.data is None
            self.count("answers")

    def on_close(self, peer: int, failed: bool) -> None:
        assert not failed
        self.count("closed", 1 + peer)


def test_requests_replies_and_closes() -> None:
    text = scenario("asks", 'clients = ["h0", "h1"]\nservers = ["h2..h4"]')
    result = ew.run(text, mechanisms=[Asks])
    # A run with an application of the user cannot be repeated without it.
    story = str(ew.explain(result, "flow", 0))
    assert "--rerun" not in story
    assert "a run with these mechanisms, and with --set 'measure.flow_parts=*'" in story
    # Each process closes right after its request. The reply still arrives, as it was written before
    # the close.
    assert own(result)["counters"]["closed"] == 3 * 1 + 3 * 2
    assert own(result)["counters"]["answers"] == 6
    assert result.summary["workloads"]["app"]["exchange_us"]["count"] == 6


def test_a_second_reply_ends_the_run() -> None:
    class Twice(Asks):
        def on_message(self, message: ew.Message) -> None:
            self.reply(message, 5000)
            self.reply(message, 5000)

    text = scenario("twice", 'clients = ["h0"]\nservers = ["h2"]')
    with pytest.raises(
        ew.RunError, match=r"^app: on_message of process 1 \(servers\): replied to a request that"
    ):
        ew.run(text, mechanisms=[Twice])


def test_more_operations_than_planned_end_the_run() -> None:
    class Counts(ew.Application):
        def on_start(self) -> None:
            self.plan(3)
            self.complete(5)

    with pytest.raises(ew.RunError, match="5 operations are completed, but only 3 are planned"):
        ew.run(scenario("counts"), mechanisms=[Counts])


def test_a_timer_beyond_the_end_of_time_names_the_limit() -> None:
    class Waits(ew.Application):
        def on_start(self) -> None:
            self.timer(2**62)

    with pytest.raises(ew.RunError, match=r"is too long: simulated time ends at 2305843\.0092"):
        ew.run(scenario("waits"), mechanisms=[Waits])


@pytest.mark.parametrize("action", ["send(1, 100)", "timer(5)", 'count("a")'])
def test_actions_before_the_start_are_refused(action: str) -> None:
    class Early(ew.Application):
        def __init__(self) -> None:
            eval(f"self.{action}")

        def on_start(self) -> None:
            pass

    name = action.partition("(")[0]
    with pytest.raises(InputError, match=rf"{name}\(\) was called before the process has started"):
        ew.run(scenario("early"), mechanisms=[Early])


def test_the_example_of_the_guide_counts_each_request_once() -> None:
    page = (ROOT / "docs" / "guide" / "own-application.md").read_text("utf-8")
    code = next(each for each in re.findall(r"```python\n(.*?)```", page, re.S) if "ew.run" in each)
    there: dict[str, Any] = {"__name__": "example"}
    exec(compile(code, "example", "exec", dont_inherit=True), there)
    assert there["own"]["answer_us"]["count"] == 6 * 300


def test_operations_that_fail_or_do_not_begin_have_a_line_and_a_note() -> None:
    hedged = scenario(
        "hedged",
        'clients = ["h0"]\nservers = ["h1"]\noperations = 20\ntimeout = "1 us"\nretries = 0\n'
        '[goal]\n"applications.app.operation_us.p99" = "< 1 ms"',
    )
    result = ew.run(hedged)
    assert own(result)["operation_us"] == {"count": 0}
    note = "app: 20 of 20 operations failed, and have no time in the measures"
    assert note in result.summary["notes"]
    assert "0 of 20 operations done, 20 failed" in [text for _, text in summary.rows(result)]
    line = goals.line(result.summary["goals"][0])
    assert line.endswith("not measured: no operation was completed")

    few = scenario("key-value", 'clients = ["h0"]\nservers = ["h1"]\noperations = 1000')
    result = ew.run(few, {"duration": "3 ms"})
    begun, completed = (own(result)["operations"][name] for name in ("begun", "completed"))
    assert 0 < completed < begun < 1000
    line = f"{completed} of 1,000 operations done, {begun - completed} not complete, "
    line += f"{1000 - begun} not begun, 1 of {begun} requests without reply"
    assert line in [text for _, text in summary.rows(result)]
    assert any("had not begun at the duration of the run" in n for n in result.summary["notes"])


def test_the_note_on_aborted_connections_names_the_transport() -> None:
    requests = {"sent": 3, "unanswered": 2, "connection_failed": 2}
    for transport, name in (("tcp", "TCP"), ("rocev2", "RoCEv2"), (None, "the transport")):
        own = {"requests": requests, "transport": transport}
        assert unanswered.reasons(own) == f"2 on connections that {name} has aborted"
    roce = scenario("key-value", 'transport = "rocev2"\noperations = 2')
    assert own_of(roce)["transport"] == "rocev2"


def own_of(text: str) -> dict[str, Any]:
    """Return the numbers of the application of a scenario."""
    return own(ew.run(text))


def test_random_numbers_depend_on_seed_and_process() -> None:
    class Draws(ew.Application):
        def on_start(self) -> None:
            self.count(f"at{self.number}", self.random.below(2**40))
            self.count(f"time{self.number}", self.random.exponential(10**9))
            if self.number == 0:
                self.send(1, 1)

    text = scenario("draws")
    drawn = [own(ew.run(text, mechanisms=[Draws], seed=seed))["counters"] for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0].values())) == 12


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (lambda p: p.send(9, 100), "there is no process 9: processes are 0 to 5"),
        (lambda p: p.send(1, 0), "the size of a message is 0 bytes"),
        (lambda p: p.send("1", 100), "the number of a process must be a whole number, not '1'"),
        (lambda p: p.timer("5 parsecs"), "'5 parsecs' is not a time such as '10 ms'"),
        (lambda p: p.timer(-1), "the delay of a timer is -1 ps"),
        (lambda p: p.count("a", -1), "by is -1"),
        (lambda p: p.send(1, 100, connection=70000), "is 70000; allowed: 0 to 65535"),
    ],
)
def test_a_wrong_call_ends_the_run_with_its_traceback(action: Any, says: str) -> None:
    class Wrong(ew.Application):
        def on_start(self) -> None:
            action(self)

    with pytest.raises(ew.InputError) as raised:
        ew.run(scenario("wrong"), mechanisms=[Wrong])
    assert says in str(raised.value) + str(raised.value.__cause__) + repr(vars(raised.value))


def test_a_wrong_name_of_a_counter_ends_the_run() -> None:
    class Named(ew.Application):
        def on_start(self) -> None:
            self.count("Not a name")

    with pytest.raises(ew.RunError, match="is not the name of a counter or measure"):
        ew.run(scenario("named"), mechanisms=[Named])


class Counted(ew.Application):
    """Asks the other processes once; declares what it counts."""

    counters: ClassVar = {"asked": "Requests.", "late": "Never."}
    measures: ClassVar = {"answer": "Time until the reply."}

    def on_start(self) -> None:
        if self.number == 0:
            self.plan(2)
            for other in (1, 2):
                self.begin()
                self.count("asked")
                self.request(other, 100)

    def on_message(self, message: ew.Message) -> None:
        if message.request is not None and self.number == 1:
            self.reply(message, 100)
        elif message.answers is not None:
            self.measure("answer", self.now_ps)
            self.complete()


def test_declared_counters_are_known_before_the_run() -> None:
    text = scenario("counted")
    for measure in ("counters.asked", "answer_us.p50", "requests.unanswered"):
        goal = f'[goal]\n"applications.app.{measure}" = "minimal"\n'
        assert ew.check(text + goal, mechanisms=[Counted]) == []
    for wrong, near in (("counters.ask", "counters.asked"), ("anwser_us.p50", "answer_us.p50")):
        goal = f'[goal]\n"applications.app.{wrong}" = "minimal"\n'
        (problem,) = ew.check(text + goal, mechanisms=[Counted])
        assert problem["hint"] == f"applications.app.{near}"
    # An application that declares nothing may count anything.
    goal = '[goal]\n"applications.app.counters.any" = "minimal"\n'
    assert ew.check(scenario("chain") + goal, mechanisms=[Chain]) == []


def test_requests_without_a_reply_have_a_number_a_reason_and_a_note() -> None:
    result = ew.run(scenario("counted"), mechanisms=[Counted])
    assert own(result)["counters"] == {"asked": 2, "late": 0}
    assert own(result)["operations"] == {"planned": 2, "begun": 2, "completed": 1}
    requests = own(result)["requests"]
    assert (requests["sent"], requests["answered"], requests["unanswered"]) == (2, 1, 1)
    assert requests["no_reply_sent"] == 1
    note = (
        "app: 1 of 2 requests had no reply when the application ended (1 not replied to by the "
        "server)"
    )
    assert note in result.summary["notes"]


def test_a_counter_that_is_not_declared_ends_the_run() -> None:
    class Other(Counted):
        """Counts under a wrong name."""

        def on_start(self) -> None:
            self.count("askd")

    with pytest.raises(ew.RunError, match='"askd" is not a declared counter'):
        ew.run(scenario("other"), mechanisms=[Other])


@pytest.mark.parametrize("names", [["missed"], {"Missed": ""}, {"a b": ""}, {1: ""}, {"": ""}])
def test_declared_names_that_cannot_be_used_are_refused(names: Any) -> None:
    wrong = type("Wrong", (Counted,), {"counters": names, "__doc__": "Wrong."})
    with pytest.raises(InputError, match=r"Wrong\.counters: "):
        sketch.describe(wrong)


def test_roles_that_cannot_be_keys_are_refused() -> None:
    wrong: list[tuple[Any, str]] = [
        ({}, "a mapping of 1 to 20"),
        ({"Clients": ""}, "'Clients' cannot be a name"),
        ({"start": ""}, "every workload has a setting start"),
        ("clients", "a mapping of 1 to 20"),
    ]
    for roles, says in wrong:

        class Roles(ew.Application):
            def on_start(self) -> None:
                """Do nothing."""

        Roles.roles = roles
        with pytest.raises(InputError, match=says):
            sketch.describe(Roles)


def test_durations_are_exact() -> None:
    assert ew.Duration("10 ms") == 10**10
    assert ew.Duration("1.5us") == 1_500_000
    assert ew.Duration("0.001 ns") == 1
    assert ew.Duration(7) == 7
    for wrong in ("10", "ms", "-1 ms", "0.0001 ns", "1e3 ms", "9999999999 h", "1 day"):
        with pytest.raises(ValueError, match=r"is not a|is longer"):
            ew.Duration(wrong)


def test_goals_have_counters_and_measures() -> None:
    goal = (
        '[goal]\n"applications.app.all_us.max" = "< 1 s"\n'
        '"applications.app.counters.hops" = "minimal"\n'
    )
    result = ew.run(scenario("chain", goal), mechanisms=[Chain])
    metrics = [each["metric"] for each in result.summary["goals"]]
    assert metrics == ["applications.app.all_us.max", "applications.app.counters.hops"]
    absent = '[goal]\n"applications.other.all_us.max" = "< 1 s"\n'
    with pytest.raises(InputError, match=r'after "applications\." comes a workload'):
        ew.run(scenario("chain", absent), mechanisms=[Chain])


def test_a_sweep_has_columns_of_the_application() -> None:
    found = ew.sweep(
        scenario("chain"),
        {"workload.app.hops": [3, 5]},
        seeds=[1, 2],
        jobs=0,
        mechanisms=[Chain],
    )
    assert found.runs["applications.app.counters.hops"].to_list() == [4, 4, 6, 6]


def test_a_sweep_whose_only_goal_names_a_missing_measure_has_results(tmp_path: Path) -> None:
    file = tmp_path / "chain.toml"
    file.write_text(scenario("chain"))
    swept = ew.sweep(
        {
            "scenario": str(file),
            "axis": [{"path": "workload.app.hops", "values": [2, 3]}],
            "seeds": [1],
            "goal": {"applications.app.none_us.p99": "< 1 s"},
        },
        jobs=0,
        mechanisms=[Chain],
    )
    assert swept.runs["applications.app.counters.hops"].to_list() == [3, 4]


def test_misspelt_hooks_and_taken_names_are_refused() -> None:
    class Misspelt(ew.Application):
        def on_start(self) -> None:
            """Do nothing."""

        def on_mesage(self, message: ew.Message) -> None:
            """Has a misspelt name, so it is never called."""

    class Taken(ew.Application):
        number: int = 3

        def on_start(self) -> None:
            """Do nothing."""

    class Late(ew.Application):
        wait: ew.Duration = 2.5  # type: ignore[assignment]

        def on_start(self) -> None:
            """Do nothing."""

    class Async(ew.Application):
        async def on_start(self) -> None:  # type: ignore[override]
            """Do nothing."""

    class Yields(ew.Application):
        def on_start(self) -> Any:
            yield

    class Named(ew.Application):
        name: int = 4  # type: ignore[misc,assignment]

        def on_start(self) -> None:
            """Do nothing."""

    class Both(ew.Application):
        roles: ClassVar = {"clients": "Hosts that ask."}
        clients: int = 3

        def on_start(self) -> None:
            """Do nothing."""

    for class_, says in [
        (Async, "Async.on_start is async, so that a call would do nothing"),
        (Yields, "Yields.on_start contains yield"),
        (Named, 'Named.name is 4, but must be a string, the name by which .* such as "named"'),
        (Both, "Both.clients: a role has this name"),
        (Misspelt, "on_mesage is not a hook; allowed: on_start"),
        (Taken, "number: Application has an attribute of this name"),
        (Late, "2.5 is not a time such as"),
    ]:
        with pytest.raises(InputError, match=says):
            sketch.describe(class_)
    with pytest.raises(InputError, match="application 'chain': class Chain has this name, too"):
        ew.run(scenario("chain"), mechanisms=[Chain, Chain])


def test_an_exception_names_process_and_time() -> None:
    class Raises(ew.Application):
        def on_start(self) -> None:
            self.timer("1 us" if self.number == 4 else "2 us")

        def on_timer(self, data: object) -> None:
            raise KeyError("server")

    with pytest.raises(
        InputError, match=r"KeyError: 'server', in process 4 \(hosts, host 4\) at 1"
    ):
        ew.run(scenario("raises"), mechanisms=[Raises])
