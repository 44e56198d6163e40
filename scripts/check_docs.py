#!/usr/bin/env python3
"""Checks of the documentation: words, line length, links. Prints findings; exit code 1 if there are any.

usage: check_docs.py words|links [ROOT]

words   refused phrases (the glossary of docs/style.md) in every tracked .md file, in comments of C++, in string literals
        of the library and the program, and in comments and strings of Python files. Code, link targets and sections
        between marks (generated tables, the examples of style.md) are not prose, and neither is a literal without a blank.
        Lines of .md files have at most 120 characters, except in code blocks and tables and where a URL makes them too long.
        Sentences of the guides state no measured times or rates; tables do.
links   relative links of all tracked .md files: the file exists, and so does the heading of an anchor.
"""
import io
import os
import posixpath
import re
import sys
import tokenize
import urllib.parse

from check_house import files_of

LINE_LENGTH = 120
GLOSSARY = "docs/style.md"
CHECKED = re.compile(r".*\.md$|(include|src|apps|python/src|tests|bench|examples|web)/.*\.[hc]pp$|(?!tests/house/test_check_docs).*\.py$")
FENCE = re.compile(r"^( *)(```+|~~~+)[^\n]*\n.*?^\1\2 *$", re.S | re.M)
MARKED = re.compile(r"^<!-- (?!/|end)(\S+)[^\n]* -->\n(?:(?!<!-- ).)*^<!-- (?:/\1|end) -->$", re.S | re.M)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.S)
TARGET = re.compile(r"\]\([^)\s]*\)|https?://[^\s)>]+")
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
# A comment, string literals without anything between them, or a character.
CPP = re.compile(r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>(?:R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:[^"\\\n]|\\.)*")'
                 r'(?:\s*"(?:[^"\\\n]|\\.)*")*)' r"|(?<!\w)'(?:[^'\\\n]|\\.)+'", re.S)
GUIDE = re.compile(r"(README|docs/(tutorials/)?[^/]*)\.md$")
MEASURED = re.compile(r"(?<![\d.,])\d[\d.,]*\s?(ms|µs|ns|[MGT]B/s|[MGT]flop/s)(?!\w)")
HEADING = re.compile(r"^#{1,6} +(.*?)(?: +#+)?$", re.M)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def prose_of(text):
    """The text with code, sections between marks and link targets replaced by blanks, so that offsets stay."""
    for pattern in (FENCE, MARKED, CODE, TARGET):
        text = pattern.sub(blank, text)
    return text


def hidden(text):
    """As `blank`, but no phrase reaches across."""
    return re.sub(r"\S", "\0", text)


def prose_of_cpp(text, groups):
    """The text with all but comments and literals ("comment", "text") hidden."""
    out, end = [], 0
    for match in CPP.finditer(text):
        out.append(hidden(text[end:match.start()]))
        if match["comment"] and "comment" in groups:
            out.append(re.sub(r"^//[/!<]*|^/\*+|\*/$", blank, match[0]))
        elif match["text"] and "text" in groups and re.search(r"\s", re.sub(r'"\s+"', "", match[0])):
            out.append(match[0].replace('"', " "))
        else:
            out.append(hidden(match[0]))
        end = match.end()
    return CODE.sub(blank, "".join(out) + hidden(text[end:]))


def prose_of_python(text):
    """The text with all but comments and strings with a blank hidden; expressions of f-strings are code."""
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    out, end = [], 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT) and re.search(r"\s", token.string):
            start, stop = (lines[row - 1] + column for row, column in (token.start, token.end))
            is_format = token.type == tokenize.STRING and "f" in token.string.partition(token.string[-1])[0].lower()
            out += [hidden(text[end:start]), re.sub(r"\{[^{}]*\}", lambda m: hidden(m[0]), token.string) if is_format else token.string]
            end = stop
    return CODE.sub(blank, "".join(out) + hidden(text[end:]))


def prose_of_file(name, text):
    """The prose of a file that is checked."""
    if name.endswith(".md"):
        return prose_of(text)
    if name.endswith(".py"):
        return prose_of_python(text)
    return prose_of_cpp(text, ("comment",) if name.startswith(("tests/", "bench/", "examples/")) else ("comment", "text"))


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8") as file:
        return file.read()


def documents(root):
    return [name for name in files_of(root) if name.endswith(".md")]


def glossary(root):
    """(pattern, phrase, replacement, allowed patterns) of each refused phrase of the table in docs/style.md."""
    def pattern(phrase):
        return re.compile(r"(?<![\w-])" + r"\s+".join(map(re.escape, phrase.split())) + r"(?![\w-])", re.I)

    section = re.search(r"<!-- glossary -->\n(.*?)<!-- /glossary -->", read(root, GLOSSARY), re.S)
    rows = [line.strip("| \n").split(" | ") for line in section.group(1).splitlines()[2:]] if section else []
    for row in rows:
        allowed = [pattern(phrase) for phrase in re.findall(r"`([^`]+)`", row[2] if len(row) > 2 else "")]
        for phrase in re.findall(r"`([^`]+)`", row[0]):
            yield pattern(phrase), phrase, row[1], allowed


def long_lines(text):
    """(line number, length) of the lines that are too long."""
    without_code = FENCE.sub(blank, text)
    for number, (line, kept) in enumerate(zip(text.splitlines(), without_code.splitlines()), 1):
        if kept.strip() and not line.lstrip().startswith("|") and len(TARGET.sub("", line)) > LINE_LENGTH:
            yield number, len(line)


def findings_of_words(name, text, phrases):
    lower = text.lower()
    phrases = [row for row in phrases if all(word in lower for word in row[1].lower().split())]
    prose = prose_of_file(name, text) if phrases else ""
    for pattern, phrase, replacement, allowed in phrases:
        fine = [match.span() for one in allowed for match in one.finditer(prose)]
        for match in pattern.finditer(prose):
            if not any(start <= match.start() and match.end() <= end for start, end in fine):
                yield f'{name}:{prose.count(chr(10), 0, match.start()) + 1}: "{phrase}": write {replacement}'
    if GUIDE.match(name) and name != GLOSSARY:
        for number, line in enumerate(prose_of(text).splitlines(), 1):
            if (match := MEASURED.search(line)) and not line.lstrip().startswith("|"):
                yield f'{name}:{number}: "{match[0]}" in a sentence: write the row of a table that has it'
    for number, length in long_lines(text) if name.endswith(".md") else ():
        yield f"{name}:{number}: {length} characters, at most {LINE_LENGTH}"


def check_words(root):
    phrases = list(glossary(root))
    if not phrases:
        return [f"{GLOSSARY}: no table between <!-- glossary --> and <!-- /glossary -->"]
    findings, checked = [], 0
    for name in filter(CHECKED.match, files_of(root)):
        checked += 1
        findings += findings_of_words(name, read(root, name), phrases)
    print(f"words: {len(phrases)} phrases, {checked} files checked, {len(findings)} findings")
    return findings


def anchors_of(text):
    """Anchors of the headings, by the rules of the usual forges: lower case, no punctuation, hyphens for blanks, numbered repetitions."""
    seen, anchors = {}, set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))
    for heading in HEADING.findall(FENCE.sub(blank, text)):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        seen[slug] = seen.get(slug, -1) + 1
        anchors.add(slug if not seen[slug] else f"{slug}-{seen[slug]}")
    return anchors


def check_links(root):
    names = set(files_of(root))
    folders = {folder for name in names for folder in parents(name)}
    findings, checked = [], 0
    for name in documents(root):
        text = read(root, name)
        prose = CODE.sub(blank, FENCE.sub(blank, text))
        for match in LINK.finditer(prose):
            target = urllib.parse.unquote(match.group(1))
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            checked += 1
            place = f"{name}:{prose.count(chr(10), 0, match.start()) + 1}: {target}"
            path, _, anchor = target.partition("#")
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if path not in names and path not in folders:
                findings.append(f"{place}: no such file in the tree")
            elif anchor and path.endswith(".md") and anchor not in anchors_of(read(root, path)):
                findings.append(f"{place}: no such heading")
    print(f"links: {checked} links checked, {len(findings)} findings")
    return findings


def parents(name):
    while name := posixpath.dirname(name):
        yield name


CHECKS = {"words": check_words, "links": check_links}


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in CHECKS:
        sys.exit(__doc__)
    root = sys.argv[2] if len(sys.argv) == 3 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    findings = CHECKS[sys.argv[1]](root)
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
