"""Pages of claims: an index of all claims (papers/README.md), and a page by study (CLAIMS.md).

The pages are made from the results that are stored beside the claims. ``eastwest claims --record``
writes the pages; a test checks that they agree with the stored results.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eastwest.claims.catalogue import SHIPPED, SOURCE_TREE, find
from eastwest.claims.profiles import FILE as PROFILES
from eastwest.claims.profiles import profiles_of
from eastwest.claims.readings import FILE as READINGS
from eastwest.claims.readings import readings_of
from eastwest.claims.record import Record, folder_of, read
from eastwest.claims.spec import Claim, Explanation, load
from eastwest.claims.verdict import DIFFERS, HOLDS, NOT_EXPLAINED, NOT_RUN, UNDECIDED, number
from eastwest.files import write_whole
from eastwest.units import plural

#: Name of the index in the folder of the studies. Where this folder has a ``README.md`` that was
#: written by hand, the index has the name ``STUDY_PAGE``.
PAGE = "README.md"
#: Name of the page of claims in the folder of each study.
STUDY_PAGE = "CLAIMS.md"

#: Text before the table that counts claims; it explains the numbers in parentheses and the sums.
_CLASSES = (
    "The table counts claims by study and reading. The column *differ* also counts its claims by "
    "the class of the difference, in parentheses. A claim that differs under another reading than "
    "the best-supported one can have no class; it is then counted by its verdict under the "
    "best-supported reading. The numbers of a claim can differ for different reasons; the claim "
    "then has several classes and is counted in each. Therefore the sum over the classes can be "
    "larger than the number of claims that differ."
)

#: Sentence in each page that this module writes; a page without it was written by hand.
_MADE = (
    "Made from the results kept beside the claims. To change this page, run "
    "`eastwest claims --record`."
)

_HEAD = f"""\
# Claims

*{_MADE}*

This page compares published results, and measurements of Linux, with results of Eastwest. Each \
claim is a small file with its source, its scenarios, the parameters that the source leaves open, \
and the band in which the simulated value must lie. {{committed}}A \
*reading* is one full set of the parameters that the source leaves open. Each study has one or \
more readings, best supported first; every claim runs under each. The best-supported reading gives \
the verdict. {{guide}} describes how to run, read and add claims, and defines the classes of \
differences and *by construction*. The simulated numbers of each claim are on the page of its \
study. The id of a claim, such as `incast/F4`, begins with the source and not with the folder of \
the study: several studies can share a source{{ids}}. In most ids, F, T, C and S with a number \
refer to a figure, a table, a conclusion and a statement of a section or chapter of the source; \
other ids are names.
"""
#: Texts of the index for studies in Eastwest's repository; ``_OTHERS`` has the texts for studies of
#: users. Only the Git history of Eastwest shows that bands were committed before results.
_OURS = {
    "committed": (
        "Bands and open parameters were committed before the first full run that uses them. "
        "On the page of a study, *(later)* in the name of a number means that the number was "
        "added, with its band, after the first full run of its claim. "
    ),
    "guide": "[The guide](../docs/guide/claims.md)",
    "ids": ", as the folders eeon\\_ch2 to eeon\\_ch7 do, whose ids begin with `eeon/`",
    "terms": (
        "Statements use the terms of their source. A link that sleeps holds arriving packets: "
        "*120us100* means for 120 µs, or until 100 packets wait. *12us10+* and *120us100+* (the + "
        "settings) have these limits on host cables, and 1ms1000 on links between switches. A "
        "*stall timer* is the idle time after which a link begins to sleep. An AQM with ECN drops "
        "early the packets that it cannot mark. In *default mode* it protects none of them; "
        "*ece-bit* protects packets whose TCP header has ECE (SYN, SYN-ACK, ACKs that echo a "
        "mark), and *ack+syn* also all other ACKs."
    ),
}
_OTHERS = {
    "committed": "",
    "guide": "The guide to claims of Eastwest (docs/guide/claims.md)",
    "ids": "",
    "terms": "",
}

#: Verbs of the verdicts, for one claim and for several.
_SAYS = {
    HOLDS: ("holds", "hold"),
    DIFFERS: ("differs", "differ"),
    UNDECIDED: ("is undecided", "are undecided"),
    NOT_RUN: ("was not run", "were not run"),
}

#: Ending of the names of numbers that were added to a claim after its first full run.
_LATER = "(later)"
_LATER_MEANS = (
    f"*{_LATER}* in the name of a number means that the number was added after the first full run "
    "of the claim. It can be an earlier number with a narrower band."
)

_STUDY_HEAD = f"""\
*{_MADE} `eastwest claims CLAIM --out FOLDER` draws a claim's figure as PNG, \
too, and under other readings.*

(95 %: *a* to *b*) is the 95 % interval of a number over seeds. Square brackets contain the \
setting or the range to which the number belongs."""


def write(papers: Path) -> None:
    """Write the index of a folder of studies, and the page of each study."""
    for path, content in texts(papers).items():
        write_whole(path, content.encode())


def texts(papers: Path) -> dict[Path, str]:
    """Return the content of the index and of each study's page, by the path of its file."""
    records = [read(claim) for claim in find(papers)]
    variants = {record.claim.id: _variants(record.claim) for record in records}
    others = {
        record.claim.id: _others(record.claim, variants[record.claim.id]) for record in records
    }
    ours = papers.resolve() in {SOURCE_TREE.resolve(), SHIPPED.resolve()}
    words = _OURS if ours else _OTHERS
    head = _HEAD.format(**words)
    measured = [record for record in records if record.claim.is_measurement]
    index = [head, *_verdict_counts(records)]
    if measured and len(measured) < len(records):
        published = [record for record in records if not record.claim.is_measurement]
        index += ["", f"{_claims(published)} about published results: {_counted(published)}.", ""]
        index.append(
            f"{_claims(measured)} about measurements made for this comparison: "
            f"{_counted(measured)}."
        )
    index += ["", _CLASSES, "", *_counts(records, others, variants)]
    if words["terms"]:
        index += ["", words["terms"]]
    pages = {}
    for study, members in _by_study(records).items():
        index += ["", f"## {_title(study)}", "", *_links(study), "", *_list(members)]
        lines = [f"# Claims: {_title(study)}", "", _STUDY_HEAD, ""]
        lines += [*_verdict_counts(members), "", *_overview(members, others)]
        if any(_LATER in part.name for record in members for part in record.claim.metrics):
            lines += ["", _LATER_MEANS]
        for record in members:
            lines += ["", *_section(record, others[record.claim.id])]
        lines += _readings(study)
        lines += _open([record.claim for record in members])
        pages[study / STUDY_PAGE] = "\n".join(lines) + "\n"
    return {_index_of(papers): "\n".join(index) + "\n", **pages}


def _index_of(papers: Path) -> Path:
    """Return the path of the index: ``README.md``, or ``CLAIMS.md`` if a user wrote the README."""
    path = papers / PAGE
    if path.is_file() and _MADE not in path.read_text(encoding="utf-8", errors="replace"):
        return papers / STUDY_PAGE
    return path


def _study(record: Record) -> Path:
    return record.claim.path.parent.parent


def _by_study(records: Sequence[Record]) -> dict[Path, list[Record]]:
    """Return the records of claims by the folder of the study, in the order of ``records``."""
    studies: dict[Path, list[Record]] = {}
    for record in records:
        studies.setdefault(_study(record), []).append(record)
    return studies


def _links(study: Path) -> Iterator[str]:
    """Yield one line: links to the study's ``README.md``, if it exists, and to ``CLAIMS.md``."""
    claims = f"[claims with their numbers]({study.name}/{STUDY_PAGE})"
    own = (study / "README.md").is_file()
    yield f"[The study]({study.name}/README.md); {claims}." if own else f"{claims}."


def _list(records: Sequence[Record]) -> Iterator[str]:
    """Yield the lines of a Markdown table of claims: link, statement, published text, verdict."""
    yield "| claim | statement | published or measured | verdict |"
    yield "|---|---|---|---|"
    for record in records:
        link = (
            f"[`{record.claim.name}`]({_study(record).name}/{STUDY_PAGE}#{_anchor(record.claim)})"
        )
        texts = f"{cell(record.claim.statement)} | {cell(record.claim.published)}"
        yield f"| {link} | {texts} | {_bold(record.verdict)} |"


def _variants(claim: Claim) -> dict[str, Claim]:
    """Return the claim with the settings of each reading of its study, by name of the reading."""
    return {name: load(claim.path, named=name) for name in readings_of(claim.path.parent.parent)}


def _others(claim: Claim, variants: Mapping[str, Claim]) -> list[Record]:
    """Return the stored results of a claim under the other readings, then under the profiles.

    ``variants`` has the claim under each reading, by the name of the reading.
    """
    study = claim.path.parent.parent
    readings = variants.values()
    profiles = [load(claim.path, name) for name in profiles_of(study) if name != claim.profile]
    return [read(other) for other in (*readings, *profiles) if other.variant != claim.variant]


def _label(claim: Claim) -> str:
    """Return the label of a claim's results: a TCP profile, or a reading (``first reading``)."""
    only = len(readings_of(claim.path.parent.parent)) == 1
    return claim.profile if only or claim.variant == claim.profile else f"{claim.reading} reading"


def _counts(
    records: Sequence[Record],
    others: Mapping[str, Sequence[Record]],
    variants: Mapping[str, Mapping[str, Claim]],
) -> Iterator[str]:
    """Yield the lines of a Markdown table that counts claims by study, reading and verdict.

    ``others`` has the stored results of each claim under other readings and profiles, by the id of
    the claim; ``variants`` has the claim under each reading, by id and name of the reading.
    """
    yield "| study | reading | claims | hold | undecided | differ | not run |"
    yield "|---|---|---|---|---|---|---|"
    for study, members in _by_study(records).items():
        readings = readings_of(study)
        best, *_ = readings
        for name in readings:
            label = f"`{name}`"
            if len(readings) > 1:  # then the page of the study has a section on readings
                label = f"[{label}]({study.name}/{STUDY_PAGE}#readings)"
            found = [
                _under(each, others[each.claim.id], variants[each.claim.id][name].variant)
                for each in members
            ]
            verdicts = {} if name == best else {each.claim.id: each.verdict for each in members}
            yield _count(study.name, label, found, verdicts)


def _under(record: Record, others: Sequence[Record], variant: str) -> Record:
    """Return the record whose results are in ``variant``: ``record`` or one of ``others``.

    ``variant`` is a subfolder of results (``Claim.variant``); several readings can share it.
    """
    return next(each for each in (record, *others) if each.claim.variant == variant)


def _count(study: str, label: str, found: Sequence[Record], best: Mapping[str, str]) -> str:
    """Return one line of the table of counts: the claims of a study under one reading.

    ``label`` is the name of the reading as Markdown; ``found`` has the records of the claims.
    ``best`` has the verdicts under the best-supported reading, by the id of the claim; it is empty
    in the line of the best-supported reading. A claim that differs without a class of its own is
    counted by its verdict in ``best``, which shows whether better values of the open parameters
    remove the difference.
    """
    by = {
        word: [record for record in found if record.verdict == word]
        for word in (HOLDS, UNDECIDED, DIFFERS, NOT_RUN)
    }
    made = sum(bool(record.claim.by_construction) for record in by[HOLDS])
    by_form = f"{made}" if made < len(by[HOLDS]) else "all"
    holds = f"{len(by[HOLDS])}" + (f" ({by_form} by construction)" if made else "")
    kinds = Counter(kind for record in by[DIFFERS] for kind in _kinds(record, best))
    told = ", ".join(f"{kind}: {number}" for kind, number in sorted(kinds.items()))
    differs = f"{len(by[DIFFERS])}" + (f" ({told})" if told else "")
    return (
        f"| {cell(study)} | {label} | {len(found)} | {holds} | {len(by[UNDECIDED])} | {differs} | "
        f"{len(by[NOT_RUN])} |"
    )


def _kinds(record: Record, best: Mapping[str, str]) -> list[str]:
    """Return the classes of a claim that differs, or else a text on its verdict in ``best``.

    ``best`` has verdicts under the best-supported reading, by the id of the claim.
    """
    verdict = best.get(record.claim.id)
    if verdict is None:
        return record.classes or [NOT_EXPLAINED]
    if classes := [kind for kind in record.classes if kind != NOT_EXPLAINED]:
        return classes
    return [f"{verdict} under the best-supported" if verdict != NOT_RUN else NOT_EXPLAINED]


def _readings(study: Path) -> list[str]:
    """Return the lines of the section on the readings of a study, with the source's words.

    The result is empty for a study with a single reading.
    """
    readings = readings_of(study)
    if len(readings) == 1:
        return []
    lines = ["", "## Readings", "", "The best supported first."]
    for reading in readings.values():
        lines += ["", f"**{reading.name}** ({reading.since}): {cell(reading.about)}"]
        if reading.values:
            lines += ["", "| value | set | the source's words |", "|---|---|---|"]
        for value in reading.values:
            shown = [f"`{path} = {each}`" for path, each in value.settings.items()]
            for path, wanted in value.only.items():
                shown.append(f"only `{path} = {' or '.join(map(str, wanted))}`")
            settings = ", ".join(shown)
            of = f" (for {cell(', '.join(value.claims))})" if value.claims else ""
            words = f"{cell(value.words)} ({cell(value.where)})"
            lines.append(f"| {cell(value.what)}{of} | {settings} | {words} |")
    return lines


def _verdict_counts(records: Sequence[Record]) -> Iterator[str]:
    """Yield one sentence: how many claims hold, differ, are undecided and were not run."""
    if len(records) == 1:
        yield f"The claim {_SAYS[records[0].verdict][0]}."
        return
    yield f"{_claims(records)}: {_counted(records)}."


def _counted(records: Sequence[Record]) -> str:
    """Return how many claims hold, differ, are undecided and were not run: ``3 hold, 2 differ``."""
    counts = Counter(record.verdict for record in records)
    shown = [word for word in _SAYS if counts[word] or word in {HOLDS, DIFFERS}]
    return ", ".join(f"{counts[word]} {_SAYS[word][counts[word] != 1]}" for word in shown)


def _claims(records: Sequence[Record]) -> str:
    return plural(len(records), "claim")


def _overview(records: Sequence[Record], others: Mapping[str, Sequence[Record]]) -> Iterator[str]:
    """Yield the lines of a Markdown table of claims: link, published text, numbers, verdicts.

    ``others`` has the records under other readings and TCP profiles, by the id of the claim.
    """
    yield (
        "| claim | published or measured | simulated | verdict | "
        "under other readings, with other TCPs |"
    )
    yield "|---|---|---|---|---|"
    for record in records:
        content = record.content if record.current else None
        measured = _short(content) if content else "–"
        published = cell(record.claim.published)
        link = f"[`{record.claim.name}`](#{_anchor(record.claim)})"
        further = ", ".join(
            f"`{_label(other.claim)}`: {_bold(other.verdict)}" for other in others[record.claim.id]
        )
        yield f"| {link} | {published} | {measured} | {_bold(record.verdict)} | {further} |"


def _short(content: dict[str, Any]) -> str:
    """Return the measured values of a stored result as a short text."""
    parts = content["metrics"]
    if len(parts) == 1:
        return _simulated(parts[0])
    return cell("; ".join(f"{part['name']}: {_value(part)}" for part in parts))


def _value(part: dict[str, Any]) -> str:
    unit = f" {part['unit']}" if part["unit"] else ""
    return f"{number(part['value'], 3)}{unit}"


def _section(record: Record, others: Sequence[Record]) -> Iterator[str]:
    """Yield the section of a claim: published text, measured numbers, and why the claim differs."""
    claim, study = record.claim, _study(record)
    yield f"## `{claim.name}`"
    yield ""
    file = claim.path.relative_to(study).as_posix()
    yield f"{cell(claim.statement)} ({cell(claim.source)}; [file]({file}))"
    yield ""
    if record.content is None or not record.current:
        changed = " since the claim has changed" if record.content else ""
        yield f"**Not run**{changed}. `eastwest claims {claim.id}` runs it."
        return
    content = record.content
    yield "| | simulated | band | |"
    yield "|---|---|---|---|"
    for part in content["metrics"]:
        band = part["band"]
        yield (
            f"| {cell(part['name'])} | {_simulated(part)} | {_band(band, part['unit'])} | "
            f"{_bold(part['verdict'])} |"
        )
    yield from _reasons(content, record)
    yield from _other_verdicts(record, others)
    picture = folder_of(claim) / f"{claim.name}.svg"
    if picture.is_file() and claim.figure:
        where = picture.relative_to(study).as_posix()
        yield ""
        yield f"![{cell(claim.figure.title)}]({where})"
        yield ""
        yield f"*{cell(claim.figure.caption)}*"
    yield ""
    results = folder_of(claim).relative_to(study).as_posix()
    yield (
        f"{plural(content['seeds'], 'seed')}, reading `{claim.reading}`, TCP profile "
        f"`{cell(content['profile'])}`, version "
        f"{cell(content['version'])}, {content['date']}: `eastwest claims {claim.id} --record`; "
        f"[JSON]({results}/{claim.name}.json), [CSV]({results}/{claim.name}.csv)."
    )


def _other_verdicts(record: Record, others: Sequence[Record]) -> Iterator[str]:
    """Yield lines on a claim's results under the other readings and TCP profiles of its study."""
    run = [other for other in others if other.content is not None and other.current]
    if not run:
        return
    study = _study(record)
    yield ""
    files = [name for name in (READINGS, PROFILES) if (study / name).is_file()]
    links = ", ".join(f"[{name}]({name})" for name in files)
    yield f"Under other readings and with other TCPs ({links}):"
    yield ""
    yield f"| | {' | '.join(f'`{_label(each.claim)}`' for each in [record, *run])} |"
    yield f"|---|{'---|' * (1 + len(run))}"
    contents = [each.content or {} for each in [record, *run]]
    for parts in zip(*(content["metrics"] for content in contents), strict=True):
        shown = [
            f"**{_simulated(part)}**" if part["verdict"] == DIFFERS else _simulated(part)
            for part in parts
        ]
        yield f"| {cell(parts[0]['name'])} | {' | '.join(shown)} |"
    verdicts = []
    for other, content in zip(run, contents[1:], strict=True):
        name = cell(_label(other.claim))
        kept = f"{folder_of(other.claim).relative_to(study).as_posix()}/{record.claim.name}"
        links = f"[JSON]({kept}.json), [CSV]({kept}.csv)"
        verdicts.append(f"`{name}`: {plural(content['seeds'], 'seed')}, {content['date']}; {links}")
        if other.verdict == DIFFERS:
            verdicts += [f"`{name}`: {text}" for text in _other_reasons(other, content)]
    yield ""
    yield "Bold: outside of the band."
    yield ""
    yield from (f"- {line}" for line in verdicts)


def _reasons(content: dict[str, Any], record: Record) -> Iterator[str]:
    """Yield lines on why a claim differs: each explanation with its numbers, or other remarks.

    ``content`` is the stored result of the claim.
    """
    if record.verdict == HOLDS and record.claim.by_construction:
        yield ""
        yield f"By construction: {cell(record.claim.by_construction)}"
    if not content["explanations"]:
        if content["explanation"]:
            yield ""
            yield cell(content["explanation"])
        return
    yield ""
    explanations = content["explanations"]
    found = any(each["borne_out"] and each.get("class") != NOT_EXPLAINED for each in explanations)
    yield "Explanations:" if found else "Attempts to explain it:"
    yield ""
    texts = {_key_of(each): each.text for each in record.claim.explanations}
    for explained in explanations:
        text = texts.get(_stored_key(explained), explained["text"])
        doubt = "" if explained["borne_out"] else " **The runs do not confirm this.**"
        kind = f"*{explained['class'].capitalize()}.* " if explained.get("class") else ""
        yield f"- {kind}{_with_numbers(text, explained['metrics'])}{doubt}"


def _other_reasons(record: Record, content: dict[str, Any]) -> Iterator[str]:
    """Yield the explanations of a claim under another reading or TCP, with their numbers.

    ``content`` is the stored result. It lacks the explanations of metrics that hold under this
    reading or TCP; they were not run.
    """
    stored = {_stored_key(each): each["metrics"] for each in content["explanations"]}
    for explanation in record.claim.explanations:
        if (key := _key_of(explanation)) in stored:
            yield _with_numbers(explanation.text, stored[key])


def _key_of(explanation: Explanation) -> tuple[str, ...]:
    """Return the names of the metrics that are explained, and of the explanation's metrics."""
    return (*explanation.of, *(metric.name for metric in explanation.metrics))


def _stored_key(explained: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the key of :func:`_key_of` for an explanation in a stored result."""
    return (*explained["of"], *(metric["name"] for metric in explained["metrics"]))


def _with_numbers(text: str, metrics: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of an explanation, followed by the numbers in ``metrics``, if any."""
    shown = "; ".join(f"{cell(metric['name'])} = {_simulated(metric)}" for metric in metrics)
    return f"{cell(text)} {shown}." if shown else cell(text)


def _simulated(part: Mapping[str, Any]) -> str:
    """Return the measured value of a stored metric for a page; the number comes first.

    A stored ``100 us, ack+syn (80 % (95 %: 79 to 81))`` becomes
    ``80 % (95 %: 79 to 81) [100 us, ack+syn]``.
    """
    found = re.fullmatch(r"(.+) \((.+ \(95 %: .+\))\)", part["measured"])
    return cell(f"{found[2]} [{found[1]}]" if found else part["measured"])


def _title(study: Path) -> str:
    """Return the title of a study: the first heading of ``README.md``, or the folder's name."""
    path = study / "README.md"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return next((line[2:] for line in lines if line.startswith("# ")), study.name)


def _open(claims: Sequence[Claim]) -> list[str]:
    """Return the lines of the section on parameters that the source leaves open, or no lines."""
    entries = dict.fromkeys(entry for claim in claims for entry in claim.open)
    if not entries:
        return []
    rows = [f"| {cell(e.what)} | {cell(e.chosen)} | {cell(e.because)} |" for e in entries]
    return ["", "## Left open", "", "| | chosen | because |", "|---|---|---|", *rows]


def _band(band: dict[str, float | None], unit: str) -> str:
    low, high = band["low"], band["high"]
    after = f" {unit}" if unit else ""
    if low is not None and high is not None:
        return f"{low:g}{after}" if low == high else f"{low:g} to {high:g}{after}"
    return f"≥ {low:g}{after}" if low is not None else f"≤ {high:g}{after}"


def _bold(verdict: str) -> str:
    return f"**{verdict}**" if verdict == DIFFERS else verdict


def _anchor(claim: Claim) -> str:
    """Return the anchor of a claim's heading, as GitHub and the documentation site write it."""
    return claim.name.lower().replace(".", "")


def cell(text: str) -> str:
    """Return a text on one line, with Markdown's signs escaped, for a cell of a Markdown table."""
    plain = " ".join(text.split())
    for sign in "\\|<>[]*_`":
        plain = plain.replace(sign, f"\\{sign}")
    return plain
