"""Removes secrets from texts, such as error messages, and from JSON values before they are kept.

Known secrets go first: those of one call and those of the environment. Then values that look like
secrets go: those under names such as ``api_key``, and keys and tokens in their documented forms. The
forms follow the rules of gitleaks (https://github.com/gitleaks/gitleaks), limited to those whose
keys can be recognised by their form alone.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from .events import JSON

__all__ = (
    "REMOVED",
    "is_secret_name",
    "may_hold_forms",
    "redact",
    "redact_forms",
    "redact_json",
    "secrets_in",
)

REMOVED: Final = "[removed]"
"""Replaces a secret."""

_SHORTEST = 8  # characters that a secret needs to be removed anywhere, also within a word
_SHORTEST_WORD = 4  # and to be removed as a separate word
_DEEPEST = 32  # levels of nesting that are searched; deeper values are removed as a whole

_SECRET_NAMES = (
    r"(?:[a-z0-9]+[-_. ])*?(?:"
    r"api[-_. ]?key|apikey|access[-_. ]?key(?:[-_. ]?id)?|account[-_. ]?key"
    r"|(?:secret|private|signing|encryption|master|auth|subscription|service|shared|session)[-_. ]?key"
    r"|(?:access|auth|refresh|id|session|security|bearer|bot|api|personal|private|oauth)[-_. ]?token"
    r"|(?:client|app|webhook|jwt)[-_. ]?secret|secret|token"
    r"|pass(?:word|wd|phrase)|pwd|credentials?|connection[-_. ]?string"
    r"|(?:proxy[-_. ])?authorization|(?:set[-_. ])?cookie|shared[-_. ]?access[-_. ]?signature"
    r")"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET_NAME = re.compile(rf"{_SECRET_NAMES}\Z", re.IGNORECASE)
_ENVIRONMENT = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)
_QUERY_NAME = re.compile(r"key|sig|signature|code|auth|x-amz-[a-z-]+|x-goog-[a-z-]+", re.IGNORECASE)

# A name before a value, of up to three words; and the value, in quotes or not.
_NAME = re.compile(
    r"(?<![\w-])(?P<name>[\w-]{1,64}(?:[ .][\w-]{1,40}){0,2})\\?[\"']?\s{0,3}"
    r"(?:(?:: ?str ?)?=>?|:=?)\s{0,3}"
)
_VALUE = re.compile(
    r"(?!(?:Bearer|Basic|Token|ApiKey|Digest|AWS4-HMAC-SHA256)\b)(?!\[removed\])"
    r"(?:(?P<quote>\\?[\"'])(?:(?!(?P=quote))[^\n]){1,4000}(?P=quote)|[\"']?[^\s\"',}\])]{1,4000})",
    re.IGNORECASE,
)

# In order, since a longer form may hold a shorter one. A group named ``keep`` stays. All repetitions
# are bounded or cannot overlap: reading takes time in proportion to the text.
_BEFORE_NAMES: tuple[re.Pattern[str], ...] = tuple(
    re.compile(form, flags)
    for form, flags in (
        # private keys, whole or cut off
        (
            (
                r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
                r".{0,20000}?(?:-----END[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
            ),
            re.DOTALL,
        ),
        # HTTP authorization, by scheme
        (
            r"(?P<keep>\b(?:Bearer|Token|ApiKey)[ :]+[\"']?)(?=[\w.*-]*[\d_.*-])[\w*.~+/=-]{8,}",
            re.IGNORECASE,
        ),
        (r"(?P<keep>\bBasic +[\"']?)[A-Za-z0-9+/*_-]{6,}={0,2}", 0),
        (r"(?P<keep>\bDigest +)\w+=[^\n]{1,2000}", 0),
        (r"(?P<keep>\b(?:Signature|Credential)=)[^\s,\"'&]{1,2000}", 0),
        # name and password in a URL
        (r"(?P<keep>://)[^/\s:@\"']{0,500}:[^/\s@\"']{1,500}(?=@)", 0),
        # a secret in the query of a URL
        (
            (
                r"(?P<keep>[?&](?:key|sig|signature|code|auth|X-Amz-[A-Za-z-]+|X-Goog-[A-Za-z-]+)=)"
                r"[^\s&\"'#]{1,4000}"
            ),
            re.IGNORECASE,
        ),
        # a whole cookie
        (r"(?P<keep>\b(?:set-)?cookie[\"']?\s{0,3}[:=]\s{0,3})[^\n]{1,4000}", re.IGNORECASE),
    )
)
_FORMS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(form, flags)
    for form, flags in (
        # keys and tokens by their prefix, in part or masked too
        (
            (
                r"\b(?:sk|pk|rk|gsk|csk|psk|xai|hf|key|fw|nvapi|pplx|tgp|r8|jina|voyage|sess|pa|sk_live|sk_test"
                r"|rk_live|rk_test|pk_live|pk_test|whsec|api_org|lsv2_pt|lsv2_sk|nvapi|tvly|fc|esecret)"
                r"[-_](?=[A-Za-z0-9_.*-]*[\d*_])[\w*.\-]{6,}"
            ),
            0,
        ),
        (r"\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9*]{6,}|\bgithub_pat_[A-Za-z0-9_*]{6,}", 0),
        (r"\bgl(?:pat|ptt|dt|rt|cbt|soat|ft|imt|agent|oas)-[\w*.-]{6,}|\bGR1348941[\w-]{6,}", 0),
        (r"\bxox[a-z]-[\w*-]{6,}|\bxapp-[\w*-]{6,}|\bxoxe\.[\w*.-]{6,}", 0),
        (r"https://hooks\.slack\.com/[\w/-]{6,}", 0),
        (r"\b(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA)[A-Z0-9*]{12,}", 0),
        (r"\bABSK[A-Za-z0-9+/]{20,}={0,2}|\bbedrock-api-key-[\w+/=]{6,}", 0),
        (r"\bAIza[\w*\-]{10,}|\bya29\.[\w.*-]{6,}|\bGOCSPX-[\w*-]{6,}|\b1//0[\w-]{10,}", 0),
        (r"\beyJ[\w-]{4,}\.[\w-]{2,}(?:\.[\w-]*)*|\beyJ[\w-]{30,}", 0),  # JSON Web Tokens
        (r"\b(?:dop|doo|dor)_v1_[a-f0-9]{6,}|\bdapi[a-f0-9]{16,}(?:-\d)?", 0),
        (
            r"\b(?:npm_|pypi-|rubygems_|shpat_|shpss_|shpca_|shppa_|hvs\.|hvb\.|dp\.pt\.)[\w.-]{6,}",
            0,
        ),
        (r"\bSG\.[\w-]{6,}\.[\w-]{6,}|\bSK[a-f0-9]{32}\b|\bAC[a-f0-9]{32}\b", 0),
        (
            r"\b(?:sntry[su]_|glsa_|glc_|PMAK-|lin_api_|secret_|ntn_|figd_|tfp_|pat-na1-)[\w.=+/-]{8,}",
            0,
        ),
        (r"\b[\w~.]{3}\dQ~[\w~.-]{31,34}", 0),  # Azure AD
        (r"\b\d{8,10}:[\w-]{35}\b", 0),  # Telegram
        (r"\bAGE-SECRET-KEY-1[A-Z0-9]{6,}", 0),
        # anything that its holder has masked, and so thinks of as a secret
        (r"\b[\w.\-]{2,200}\*{3,}[\w.\-]{0,200}", 0),
    )
)

# A form can occur only in a text with one of its strings; forms without such strings are left out.
_MARKERS: tuple[tuple[tuple[str, ...], tuple[re.Pattern[str], ...]], ...] = (
    (("PRIVATE KEY",), _BEFORE_NAMES[:1]),
    (("earer ", "earer:"), _BEFORE_NAMES[1:2]),
    (("uthorization: Basic", "uthorization: basic"), _BEFORE_NAMES[2:3]),
    (("://",), _BEFORE_NAMES[5:6]),
    (
        ("sk-", "sk_", "pk_live", "rk_live", "gsk_", "xai-", "hf_", "nvapi-", "whsec_", "tvly-"),
        _FORMS[:1],
    ),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), _FORMS[1:2]),
    (("glpat-", "gldt-", "glrt-", "glptt-", "GR1348941"), _FORMS[2:3]),
    (("xox", "xapp-", "hooks.slack.com"), _FORMS[3:5]),
    (("AKIA", "ASIA", "ABIA", "ACCA", "ABSK", "bedrock-api-key-"), _FORMS[5:7]),
    (("AIza", "ya29.", "GOCSPX-"), _FORMS[7:8]),
    (("eyJ",), _FORMS[8:9]),
    (("dop_v1_", "doo_v1_", "dor_v1_"), _FORMS[9:10]),
    (("npm_", "pypi-", "rubygems_", "shpat_", "shpss_", "hvs.", "hvb."), _FORMS[10:11]),
    (("SG.",), _FORMS[11:12]),
    (("sntry", "glsa_", "glc_", "PMAK-", "lin_api_", "ntn_", "figd_"), _FORMS[12:13]),
    (("AGE-SECRET-KEY-1",), _FORMS[15:16]),
)
_MARKED: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (markers, form) for markers, forms in _MARKERS for form in forms
)

# Every text with one of the markers (and, after "://", a password) contains one of these. Each
# begins with a character that is rare in texts, so that most of a text is skipped quickly: the search
# takes a fifth of the time of a search for the markers one by one.
_SIGNS = tuple(
    (sign[0], re.compile(sign).search)
    for sign in (
        (
            r"_(?:(?<=(?:sk|hf)_)|(?<=(?:gh[pousr]|npm|ntn|glc|lin)_)"
            r"|(?<=(?:hpat|hpss|glsa|figd|hsec|gems|thub)_)|(?=live|v1_))"
        ),
        (
            r"-(?<=[kiytpXKT]-)(?:(?<=sk-)|(?<=xai-)"
            r"|(?<=(?:vapi|tvly|lpat|gldt|glrt|lptt|xapp|rock|CSPX|pypi|PMAK|CRET)-))"
        ),
        r"A(?=KIA|SIA|BIA|CCA|BSK|Iza)",
        r"G(?:(?=R1348941)|(?<=SG)(?=\.))",
        r"J(?<=eyJ)",
        r"V(?<=PRIV)(?=ATE KEY)",
        r"z(?<=uthoriz)(?=ation: [Bb]asic)",
        r"x(?=ox)",
        r"k(?=s\.slack\.com)",
        r"v(?<=hv)(?=[sb]\.)",
        r"9(?<=ya29)(?=\.)",
        r"y(?<=sntry)",
        r"://[^/\s:@\"']{0,500}:[^/\s@\"']{1,500}@",
    )
)

# The secret half of an AWS pair has an unspecific form, so it is removed only next to the other half.
_AWS = re.compile(r"\b(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}")
_AWS_SECRET = re.compile(
    r"(?<![\w+/=])(?=[^\s]{0,39}[a-z])(?=[^\s]{0,39}[A-Z])(?=[^\s]{0,39}\d)[A-Za-z0-9+/]{40}(?![\w+/=])"
)


def redact(
    text: str, secrets: Iterable[str] = (), *, environ: Mapping[str, str] | None = None
) -> str:
    """The text with whatever is, or looks like, a secret replaced by `REMOVED`.

    Args:
        text: e.g. a provider's message, which may quote the key that it was sent.
        secrets: known ones, e.g. ``secrets_in`` of the call that failed. One of fewer than 8
            characters goes where it is a word of its own, one of fewer than 4 nowhere.
        environ: the environment, whose values under names such as ``..._API_KEY`` are secrets; None
            for the program's own.
    """
    return _redacted_text(text, _spelled(secrets, os.environ if environ is None else environ))


def _redacted_text(text: str, spelled: Sequence[str]) -> str:
    """A text without secrets; ``spelled`` holds the known secrets in all their spellings."""
    for secret in spelled:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, REMOVED)
        elif len(secret) >= _SHORTEST_WORD and secret in text:
            text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", REMOVED, text)
    if _AWS.search(text):
        text = _AWS_SECRET.sub(REMOVED, text)
    for form in _BEFORE_NAMES:
        text = form.sub(_replacement, text)
    text = _without_named(text)
    for form in _FORMS:
        text = form.sub(_replacement, text)
    return text


def redact_json(value: JSON, secrets: Iterable[str] = ()) -> JSON:
    """A value with secrets replaced: whole values under telling names, and parts of texts.

    Args:
        value: e.g. the arguments of a call, or an event of another system.
        secrets: known ones; see ``redact``.
    """
    return _redacted(value, _spelled(secrets, os.environ), 0)


def redact_forms(text: str) -> str:
    """The text with keys and tokens of documented forms replaced, and nothing else.

    For conversations, in which people and agents write of code: there ``token = next(tokens)`` is no
    secret. Fast if there is none: most forms are ruled out by looking for their beginnings.
    """
    if not may_hold_forms(text):
        return text
    if "AKIA" in text or "ASIA" in text:
        text = _AWS_SECRET.sub(REMOVED, text)
    for markers, form in _MARKED:
        if any(marker in text for marker in markers):
            text = form.sub(_replacement, text)
    return text


def may_hold_forms(text: str) -> bool:
    """Whether ``redact_forms`` may replace something in a text; far cheaper if it does not.

    Args:
        text: a text, or JSON. In JSON the characters before a token may be part of an escape, so
            only ``redact_forms`` on the decoded texts decides whether it is a token.
    """
    for first, search in _SIGNS:  # no generator: this runs for every record that is imported
        if first in text and search(text) is not None:
            return True
    return "earer" in text and ("earer " in text or "earer:" in text)


def is_secret_name(name: str) -> bool:
    """Whether the value under this name is a secret: ``api_key``, ``Authorization``, ..."""
    return _SECRET_NAME.match(_CAMEL.sub("_", name)) is not None


def secrets_in(parameters: Mapping[str, object]) -> tuple[str, ...]:
    """The secrets among the parameters of a call: values under secret names, at any depth, and
    secrets in the user part and the query of URLs.
    """
    return tuple(dict.fromkeys(_secrets(parameters, 0, secret=False)))


def _secrets(value: object, depth: int, *, secret: bool) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        for name, part in value.items():
            named = secret or (isinstance(name, str) and is_secret_name(name))
            yield from _secrets(part, depth + 1, secret=named)
    elif isinstance(value, bytes):
        yield from _secrets(value.decode("utf-8", "replace"), depth, secret=secret)
    elif isinstance(value, str):
        if secret:
            yield value
            yield from value.split()[1:]  # of a scheme and a credential, the latter alone as well
        elif "://" in value:
            yield from _secrets_of_url(value)
    elif isinstance(value, Sequence):
        for part in value:
            yield from _secrets(part, depth + 1, secret=secret)
    elif secret and callable(getattr(value, "get_secret_value", None)):  # as pydantic wraps them
        yield str(getattr(value, "get_secret_value")())  # noqa: B009  (no type that is known here)


def _secrets_of_url(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query)
        password = parts.password
    except ValueError:  # it is not a URL
        return
    if password:
        yield unquote(password)
    for name, value in query:
        if _QUERY_NAME.fullmatch(name) or is_secret_name(name):
            yield value


def _spelled(secrets: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """Known secrets and those of the environment, as messages may spell them; longest first."""
    known = {v for k, v in environ.items() if len(v) >= _SHORTEST and _ENVIRONMENT.search(k)}
    spelled = {form for secret in {*known, *secrets} for form in _spellings(secret)}
    return sorted(spelled, key=len, reverse=True)


def _spellings(secret: str) -> Iterator[str]:
    """The spellings of a secret in messages: as it is, in a URL, in JSON, on one line."""
    yield secret
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield json.dumps(secret)[1:-1]
    yield " ".join(secret.split())
    yield secret.strip()


def _without_named(text: str) -> str:
    """The text without the values under secret names."""
    pieces: list[str] = []
    end = 0
    for found in _NAME.finditer(text):
        if found.start() < end or not is_secret_name(found["name"]):
            continue
        value = _VALUE.match(text, found.end())
        if value is not None:
            quote_mark = value["quote"] or ""
            pieces += [text[end : found.end()], quote_mark, REMOVED, quote_mark]
            end = value.end()
    return "".join([*pieces, text[end:]])


def _replacement(found: re.Match[str]) -> str:
    return (found.groupdict().get("keep") or "") + REMOVED


def _redacted(value: JSON, spelled: Sequence[str], depth: int) -> JSON:
    if depth > _DEEPEST:
        return REMOVED
    if isinstance(value, str):
        return _redacted_text(value, spelled)
    if isinstance(value, Mapping):
        return {
            _redacted_text(name, spelled): (
                REMOVED
                if is_secret_name(name) and not isinstance(part, int | float | None)
                else _redacted(part, spelled, depth + 1)
            )
            for name, part in value.items()
        }
    if isinstance(value, Sequence):
        return [_redacted(part, spelled, depth + 1) for part in value]
    return value
