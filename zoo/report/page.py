"""The page: one file of HTML with its style and its drawings inside, which asks for nothing else."""

from html import escape

from zoo.report.charts import THEMES, Chart

STYLE = """
:root { --paper: #ffffff; --ink: #1b1f24; --soft: #5b6570; --line: #d7dce2; --panel: #f6f7f9; --link: #0057a3; }
.dark { display: none }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181d; --ink: #e6e9ed; --soft: #9aa5b1; --line: #39414b; --panel: #1b2027; --link: #7cc0ff; }
  .light { display: none } .dark { display: block }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.55 system-ui, sans-serif }
main, header, footer { max-width: 62rem; margin: 0 auto; padding: 0 1.25rem }
header { padding-top: 2.5rem } h1 { font-size: 1.9rem; margin: 0 0 .3rem; letter-spacing: -.01em }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .4rem; padding-top: 1.2rem; border-top: 1px solid var(--line) }
h3 { font-size: 1rem; margin: 1.6rem 0 .3rem } p { margin: .4rem 0; max-width: 46rem } .soft { color: var(--soft) }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; margin: 1rem 0 0 } a { color: var(--link) }
figure { margin: .8rem 0 1.2rem; overflow-x: auto } figure svg { max-width: 100%; height: auto; display: block }
svg text { font-family: system-ui, sans-serif !important }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .65rem; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top }
th { font-weight: 600; color: var(--soft); white-space: nowrap } td.number { text-align: right; white-space: nowrap }
details { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .4rem .8rem; margin: .6rem 0 }
summary { cursor: pointer; color: var(--soft) }
.measured::before { content: "● " } .published::before { content: "◇ " } .estimated::before { content: "△ " }
.measured { color: #0072b2 } .published { color: #d55e00 } .estimated { color: #009e73 }
.warn { border-left: 3px solid #e69f00; padding-left: .7rem } footer { color: var(--soft); padding: 2.5rem 1.25rem }
""".strip()


def figure(chart: Chart) -> str:
    """A drawing, in the colours that the reader's system asks for, with its words for those who can't see it."""
    drawings = "".join(f'<div class="{theme.name}">{chart.svg(theme)}</div>' for theme in THEMES)
    label = escape(chart.text, quote=True)
    return (
        f'<h3>{escape(chart.title)}</h3><figure id="{chart.name}" role="img" aria-label="{label}">{drawings}</figure>'
    )


def table(
    head: list[str], body: list[list[str]], numbers: frozenset[int] = frozenset(), bases: int | None = None
) -> str:
    """A table of text.

    Args:
      head: of its columns.
      body: its rows.
      numbers: columns to be set to the right.
      bases: the column that holds 'measured', 'published' or 'estimated'.
    """

    def cell(i: int, text: str) -> str:
        if i == bases:
            return f'<td><span class="{escape(text)}">{escape(text)}</span></td>'
        return f'<td class="number">{escape(text)}</td>' if i in numbers else f"<td>{escape(text)}</td>"

    rows = "".join("<tr>" + "".join(cell(i, text) for i, text in enumerate(row)) + "</tr>" for row in body)
    heads = "".join(f"<th>{escape(text)}</th>" for text in head)
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'


def folded(summary: str, content: str) -> str:
    """Content that is shown on demand."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def warning(text: str) -> str:
    """A paragraph that is not to be missed."""
    return f'<p class="warn">{escape(text)}</p>'


def page(title: str, introduction: str, sections: list[tuple[str, str]], footer: str) -> str:
    """The whole page.

    Args:
      title: of it.
      introduction: below it, in text.
      sections: head and HTML of each.
      footer: text.
    """
    ids = [f"section-{i}" for i in range(len(sections))]
    links = "".join(f'<a href="#{i}">{escape(head)}</a>' for i, (head, _) in zip(ids, sections, strict=True))
    body = "".join(
        f'<section id="{i}"><h2>{escape(head)}</h2>{content}</section>'
        for i, (head, content) in zip(ids, sections, strict=True)
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        # Nothing may be loaded from anywhere, whatever a name in the data holds.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">"
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{STYLE}</style></head><body>'
        f"<header><h1>{escape(title)}</h1><p class=soft>{escape(introduction)}</p><nav>{links}</nav></header>"
        f"<main>{body}</main><footer>{escape(footer)}</footer></body></html>\n"
    )
