"""The form of a login page, filled in and sent as a browser does it."""

from __future__ import annotations

import pytest
from nephila_login.login_form import MAX_FIELDS, Submission, read_login_page


def sent(html: str, encoding: str = "utf-8") -> Submission:
    """The request of the form with the field `user`."""
    page = read_login_page(html, encoding)
    form = page.login_form(["user"])
    assert form is not None
    return page.submission(form, {"user": "me"}, "BOUNDARY")


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ("<select name=a><option value=1>x<option value=2 selected>y</select>", "user=me&a=2"),
        ("<select name=a><option> x <b>y</b>\n z</option><option>w</select>", "user=me&a=x+y+z"),
        ("<select name=a><option disabled>no<option value=''>x<optgroup disabled><option>no</select>", "user=me&a="),
        ("<select name=a><optgroup disabled><option>no</optgroup><option>x</select>", "user=me&a=x"),
        ("<select name=a><option selected>x<option selected>y</select>", "user=me&a=y"),
        ("<select name=a multiple><option>x<option selected>y<option selected>z</select>", "user=me&a=y&a=z"),
        ("<select name=a multiple><option>x</select><select name=b disabled><option>y</select>", "user=me"),
        ("<select name=a></select><input name=b>", "user=me&b="),
        ("<textarea name=a>\nx\ny</textarea>", "user=me&a=x%0D%0Ay"),
        ("<textarea name=a><input name=b>&lt;</textarea><input name=c>", "user=me&a=%3Cinput+name%3Db%3E%3C&c="),
        ("<textarea name=a>x</textarea ><textarea name=b></textarea>", "user=me&a=x&b="),
        ("<input type=radio name=a value=1><input type=radio name=a value=2 checked><input type=checkbox name=b>",
         "user=me&a=2"),
        ("<input type=CHECKBOX name=a checked><input type=checkbox name=a checked value=''>", "user=me&a=on&a="),
        ("<input type=hidden name=a value=1><input type=hidden name=a value=2>", "user=me&a=1&a=2"),
        ("<input type=hidden name=_charset_><input type=file name=f>", "user=me&_charset_=utf-8&f="),
        ("<button name=a type=button value=0></button><button name=b value=1>x</button><input type=submit name=c>",
         "user=me&b=1"),
        ("<input type=submit disabled name=a><button></button><button name=b>x</button>", "user=me"),
        ("<input type=image name=go><input type=submit name=c>", "user=me&go.x=0&go.y=0"),
        ("<fieldset disabled><legend><input name=a></legend><legend><input name=b></legend><input name=c></fieldset>"
         "<input name=d>", "user=me&a=&d="),
        ("<fieldset disabled><fieldset><input name=a></fieldset></fieldset><fieldset><input name=b></fieldset>",
         "user=me&b="),
        ("<input name=a form=f><input name=b form=g></form><input name=c><input name=d form=f><form id=g>",
         "user=me&a=&d="),
        ("<input name=a value='ñ&amp;=+ ~*'><form><input name=b></form><input name=c>",
         "user=me&a=%C3%B1%26%3D%2B+%7E*&b="),
        ("<!--<input name=a>--><script>'<input name=b>'</script><style><input name=c></style><input value=x>",
         "user=me"),
        ("<input name=a value=1 name=b>", "user=me&a=1"),
    ],
)  # fmt: skip
def test_what_a_browser_sends(fields: str, body: str) -> None:
    """The entries of the standard."""
    assert sorted(sent(f"<form id=f method=post><input name=user>{fields}").body.decode().split("&")) == sorted(
        body.split("&")
    )


@pytest.mark.parametrize(
    ("fields", "name", "value", "body"),
    [
        ("<input type=hidden name=a value=0><input type=checkbox name=a value=1>", "a", "1", "a=0&a=1"),
        ("<input type=checkbox name=a>", "a", "on", "a=on"),
        ("<input type=radio name=a value=1 checked><input type=radio name=a value=2>", "a", "2", "a=2"),
        ("<select name=a><option>x<option>y</select>", "a", "y", "a=y"),
        ("<input type=hidden name=a value=1>", "a", "2", "a=2"),
        ("<input name=a value=1><input name=a value=2>", "a", "3", "a=1&a=3"),
    ],
)
def test_a_value_goes_where_a_person_would_put_it(fields: str, name: str, value: str, body: str) -> None:
    page = read_login_page(f"<form>{fields}</form>")
    form = page.login_form([name])
    assert form is not None
    assert page.submission(form, {name: value}, "").body.decode() == body


def test_a_button_may_say_where_and_how_the_form_is_sent() -> None:
    """The first submit button that is on is the one that Enter presses."""
    html = (
        "<base href=/x/ ><base href=/y/><form action=a method=get><input name=user>"
        "<button formaction=no disabled></button><button formaction=' do?ñ ' formmethod=POST name=b value=1></button>"
    )
    assert sent(html) == Submission("do?ñ", "post", "application/x-www-form-urlencoded", b"user=me&b=1")
    assert sent(html, "windows-1252").action == "do?%F1"
    assert read_login_page(html).base == "/x/"


def test_the_encoding_of_a_form() -> None:
    """That of its page, or the first known one that it names."""
    html = "<form method=post><input name=user><input name=a value=ñ中>"
    assert sent(html, "windows-1252").body == b"user=me&a=%F1%26%2320013%3B"
    named = html.replace("<form", "<form accept-charset='x, gbk'")
    assert sent(named, "windows-1252").body == b"user=me&a=%26%23241%3B%D6%D0"


def test_multipart_and_plain_text() -> None:
    """A file that nobody has chosen has no name."""
    fields = "<input name=user><input name='a&quot;' value='ñ+ b'><input type=file name=f>"
    multipart = sent(f"<form method=post enctype=Multipart/Form-Data>{fields}", "windows-1252")
    assert multipart.content_type == "multipart/form-data; boundary=BOUNDARY"
    assert multipart.body == (
        b'--BOUNDARY\r\nContent-Disposition: form-data; name="user"\r\n\r\nme\r\n'
        b'--BOUNDARY\r\nContent-Disposition: form-data; name="a%22"\r\n\r\n\xf1+ b\r\n'
        b'--BOUNDARY\r\nContent-Disposition: form-data; name="f"; filename=""\r\n'
        b"Content-Type: application/octet-stream\r\n\r\n\r\n--BOUNDARY--\r\n"
    )
    plain = sent("<form enctype=text/plain><input name=user><input name=a value='1 2'>")
    assert (plain.content_type, plain.body) == ("text/plain", b"user=me\r\na=1 2\r\n")


def test_a_password_field_is_seen_outside_of_a_form() -> None:
    assert read_login_page("<input TYPE=' password '>").asks_password
    assert not read_login_page("<!--<input type=password>--><button type=password>").asks_password


def test_hostile_pages_have_bounds() -> None:
    """Forms, fields, tags and unclosed elements by the thousand."""
    form = read_login_page("<form><input name=user>" + "<input name=a>" * 5000).login_form(["user"])
    assert form is not None
    assert len(form.controls) == MAX_FIELDS
    for part in ("<textarea>", "<select><option>", "<fieldset disabled><legend>", "<form><input name=x form=x>"):
        read_login_page(part * 20_000)
