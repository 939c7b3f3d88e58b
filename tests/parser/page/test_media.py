"""Images and videos with what is said about them."""

from __future__ import annotations

import pytest
from nephila.parser.page.media import best_of_srcset, media
from nephila.parser.page.tree_walk import PageElements
from selectolax.lexbor import LexborHTMLParser


def found(html: str) -> tuple[list[tuple[str, ...]], list[str]]:
    """Images in full and URLs of videos."""
    images, videos = media([], PageElements(LexborHTMLParser(html)).media, lambda raw: raw)
    return [tuple(image) for image in images], [video.url for video in videos]


@pytest.mark.parametrize(
    ("srcset", "best"),
    [
        ("a 1x, b 2x", "b"),
        ("a 1x,b 2x,c 1.5x", "b"),
        ("/x,y 100w, /z 300w 200h, /q 50w", "/z"),
        ("a", "a"),
        ("a, b", "a"),
        (" , ,", ""),
        ("a 99999999999999999999w, b 2w", "b"),
        ("a nonsense, b 2w", "b"),
        ("a 0w, b 0w", ""),
        ("a 2w, b 2w", "a"),
        ("a 1x b 2x", "a"),
        ("/x,y", "/x,y"),
        (",a", "a"),
        ("a,", "a"),
        ("a 320w, b 640w, /c_1,d 480w", "b"),
        ("a (x,y), b 2x", "b"),
        ("a 1x (b, c 9x), d 2x", "d"),
        ("a 2x (, b 9x", "a"),
    ],
)
def test_largest_candidate(srcset: str, best: str) -> None:
    """Of a srcset, by width or density; commas within URLs stay."""
    assert best_of_srcset(srcset) == best


def test_caption_alt_and_link() -> None:
    """The figure's caption, the image's own words, the link around it."""
    images, _ = found(
        "<figure><a href=/big><img src=a.png alt='A  web'></a><figcaption>Seen\n in May</figcaption></figure>"
    )
    assert images == [("a.png", "A web", "Seen in May", "/big")]


def test_lazy_images_and_pictures() -> None:
    """Where placeholders stand in src, the address is beside it."""
    images, _ = found(
        "<img src='data:,x' data-srcset='s 1x, l 2x'><picture><source srcset='w 9w, v 10w'><img data-lazy=p></picture>"
    )
    assert [image[0] for image in images] == ["l", "v", "p"]


def test_players() -> None:
    """Embedded players are videos, other frames are not."""
    frames = "<iframe src='https://player.vimeo.com/video/1'></iframe><iframe src='https://ads.test/'></iframe>"
    assert found(frames + "<iframe data-src='https://www.youtube.com/embed/x'></iframe>")[1] == [
        "https://player.vimeo.com/video/1",
        "https://www.youtube.com/embed/x",
    ]
