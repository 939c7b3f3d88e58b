"""Formulas are LaTeX, in a line or a block of their own; notes are notes, by whatever links or numbers lead to them."""

from __future__ import annotations

import pytest

from .conftest import load

FRACTION = "<mfrac><mi>a</mi><msqrt><mi>&#x3C0;</mi></msqrt></mfrac>"
SUM = "<msubsup><mo>&sum;</mo><mi>i</mi><mn>9</mn></msubsup><mtext>of x</mtext>"
HIDDEN = "class=mwe-math-mathml-inline style='display: none'"
SOURCE = "<annotation encoding=application/x-tex>x^2</annotation>"


def markdown_of(html: str) -> str:
    """Markdown of a page that is main text as a whole."""
    core = load("rust")
    text, structure = core.structure_by(f"<body>{html}".encode(), "utf-8", [])
    written: bytes = core.markdown(structure, text, "http://a.test/")
    return written.decode()


@pytest.mark.parametrize(
    ("html", "formula"),
    [
        (f"<math><semantics><mi>x</mi>{SOURCE}</semantics></math>", "x^2"),
        ("<math alttext='x_{1}'><mi>x</mi></math>", "x_{1}"),
        (f"<math>{FRACTION}</math>", "\\frac{a}{\\sqrt{\\pi}}"),
        (f"<math>{SUM}</math>", "\\sum_{i}^{9} \\text{of x}"),
        ("<math><mover><mi>x</mi><mo>^</mo></mover><mo>&lt;</mo><mi>y</mi></math>", "\\hat{x} < y"),
        (f"<span class=katex><math>{SOURCE}</math><span class=katex-html>x2</span></span>", "x^2"),
        ("<span class=math-inline data-math='x^2'><span class=katex>x2</span></span>", "x^2"),
        ("<script type='math/tex'>x^2</script>", "x^2"),
        (f"<mjx-container><mjx-math>x2</mjx-math><mjx-assistive-mml><math>{FRACTION}</math></mjx-assistive-mml>"
         "</mjx-container>",
         "\\frac{a}{\\sqrt{\\pi}}"),
        (f"<span class=mwe-math-element><span {HIDDEN}><math>{SOURCE}</math></span>"
         "<img class=mwe-math-fallback-image-inline src=/x alt='{\\displaystyle x^2}'></span>", "x^2"),
        ("<img src=/x alt='\\frac{a}{b}'>", "\\frac{a}{b}"),
        ("<img src='https://latex.codecogs.com/svg.image?%5Cfrac%7Ba%7D%7Bb%7D'>", "\\frac{a}{b}"),
    ],
)  # fmt: skip
def test_formula_in_a_line(html: str, formula: str) -> None:
    """It is written once."""
    assert markdown_of(f"<p>a {html} b</p>") == f"a ${formula}$ b"


@pytest.mark.parametrize(
    "html",
    [
        f"<math display=block>{SOURCE}</math>",
        f"<span class=katex-display><span class=katex><math>{SOURCE}</math></span></span>",
        "<script type='math/tex; mode=display'>x^2</script>",
        "<span class=math-block data-math='x^2'>x2</span>",
        f"<mjx-container display=true><mjx-assistive-mml><math>{SOURCE}</math></mjx-assistive-mml></mjx-container>",
    ],
)
def test_formula_in_a_line_of_its_own(html: str) -> None:
    """It parts the paragraph."""
    assert markdown_of(f"<p>a {html} b</p>") == "a\n\n$$\nx^2\n$$\n\nb"


def test_text_of_a_picture_is_no_formula() -> None:
    """A path is none."""
    assert markdown_of("<p>a<img src=/i alt='C:\\temp\\x_1'>") == "a![C:\\\\temp\\\\x_1](http://a.test/i)"


@pytest.mark.parametrize(
    ("reference", "note"),
    [
        ("<sup><a href=#fn1>1</a></sup>", "<ol><li id=fn1><p>Note. <a href=#fnref1>↩</a></p></ol>"),
        ("<sup id=cite_ref-1><a href=#cite_note-1>[1]</a></sup>",
         "<ol><li id=cite_note-1><b><a href=#cite_ref-1>^</a></b> Note.</ol>"),
        ("<sup><a href=#_ftn1>[1]</a></sup>", "<p><sup><a href='//x#_ftnref1'>[1]</a> </sup>Note.</p>"),
        ("<sup class=fn><a href=#a1b2 id=a1b2-link>1</a></sup>",
         "<ol><li id=a1b2>Note. <a href=#a1b2-link>↩︎</a></ol>"),
        ("<sup><a href=#1>1</a></sup>", "<div id=1><sup>1</sup><p>Note.</p></div>"),
        ("<a href='http://a.test/p#footnote-1-99' class=footnote-anchor>1</a>",
         "<div><a id=footnote-1-99 href='http://a.test/p#footnote-anchor-1-99'>1</a><div><p>Note.</p></div></div>"),
        ("<span><a href=#easy-footnote-bottom-1-9><sup>1</sup></a></span>",
         "<ol><li><span id=easy-footnote-bottom-1-9></span>Note.<a href=#easy-footnote-1-9></a></ol>"),
        ("<sup>1</sup>", "<h2>Notes</h2><p><sup>1</sup> Note.</p>"),
        ("<sup>1</sup>", "<hr><p><strong>1</strong> Note.</p>"),
    ],
)  # fmt: skip
def test_notes(reference: str, note: str) -> None:
    """The number stands in the text and before the note; what leads back is left out."""
    written = markdown_of(f"<p>Text{reference}.</p>{note}").split("\n\n")
    assert (written[0], written[-1]) == ("Text[^1].", "[^1]: Note.")


def test_raised_number_without_a_note_is_raised() -> None:
    """As in a unit; a link to a part of the page is a link."""
    html = "<p>m<sup>2</sup> <a href=#part>part</a><h2>Notes</h2><p>x"
    assert markdown_of(html) == "m<sup>2</sup> [part](http://a.test/#part)\n\n## Notes\n\nx"


def test_note_that_is_referred_to_twice_has_one_number() -> None:
    """In the order of the first references."""
    html = "<p>a<sup><a href=#fn7>7</a></sup> b<sup><a href=#fn3>3</a></sup> c<sup><a href=#fn7>7</a></sup>"
    notes = "<ol><li id=fn3>Three<li id=fn7>Seven</ol>"
    assert markdown_of(html + notes) == "a[^1] b[^2] c[^1]\n\n[^2]: Three\n[^1]: Seven"
