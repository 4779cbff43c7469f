"""The report as Markdown, with the figures beside it."""

from __future__ import annotations

from analysis.measures import claims
from analysis.pages import tables
from analysis.pages.escape import code, image, text
from analysis.pages.sections import Report, Section


def render(report: Report) -> str:
    parts = ["# lloydbench report\n"]
    parts += [f"Not read: {text(reason)}\n" for reason in report.unread]
    if len(report.sections) > 1:
        titles = [f"- {text(section.title)} ({section.folder})" for section in report.sections]
        parts.append("\n".join(titles) + "\n")
    for section in report.sections:
        parts += _run(section)
    counts = claims.counts(report.judged)
    parts.append(f"## Claims of the studies: {counts}\n")
    for study in report.studies:
        parts.append(f"### {study.name}\n")
        parts.append(tables.claims_table(study.judged))
    parts.append("## Published numbers and these runs'\n")
    for study in report.studies:
        for name, header, rows in study.tables:
            parts.append(f"### {study.name}: {name}\n")
            parts.append(tables.markdown(header, rows, {*header} & {"published", "here"}))
    parts.append(f"Written by {code(report.command)}.\n")
    return "\n".join(parts)


def _run(section: Section) -> list[str]:
    parts = [f"## {text(section.title)}\n"]
    parts.append(f"{text(section.environment)}. Run directory: `{section.folder}`.\n")
    parts.append(f"Again: {code(section.command)}\n")
    parts += [f"Note: {text(warning)}\n" for warning in section.warnings]
    for figure in section.figures:
        if not figure.stem:
            parts.append(f"Figure `{figure.name}` is not drawn: {text(figure.message)}.\n")
            continue
        parts.append(image(f"{figure.name}: {section.title}", f"{figure.stem}.png") + "\n")
        parts.append(f"[{figure.name}.svg]({figure.stem}.svg), [rows]({figure.stem}.csv)\n")
    parts.append(f"### Medians: {section.ok:,} of {section.points:,} points\n")
    if section.ok:
        over = f"; speedup over {code(section.baseline)}" if section.baseline else ""
        parts.append(f"Medians with 95% intervals{over}.\n")
        header, rows = section.medians
        parts.append(tables.markdown(header, rows, {*header} - {"version", "precision"}))
    if section.noisy:
        parts.append(f"### Noisy: {len(section.noisy):,} points\n")
        parts.append(f"{text(section.noise)}\n")
        header = ["point", "disturbed samples", "by"]
        parts.append(tables.markdown(header, section.noisy, set()))
    if section.missing:
        parts.append(f"### Without result: {len(section.missing):,} points\n")
        parts.append(tables.markdown(["point", "status", "reason"], section.missing, set()))
    parts.append("### Environment\n")
    parts.append(tables.markdown(["what", "value"], [list(fact) for fact in section.facts], set()))
    return parts
