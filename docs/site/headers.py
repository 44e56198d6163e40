"""Pages of the public headers out of Doxygen's XML: classes and functions as they are declared, with their comments."""
import collections
import pathlib
import re
import xml.etree.ElementTree as ElementTree


def text_of(element):
    """Descriptions as paragraphs; code stays code."""
    if element is None:
        return ""

    def words(node):
        inner = (node.text or "") + "".join(words(child) + (child.tail or "") for child in node)
        return f"`{inner}`" if node.tag == "computeroutput" else inner

    paragraphs = [" ".join(words(p).split()) for p in element.iter("para")]
    return "\n\n".join(p.replace("<", "&lt;") if "`" not in p else p for p in paragraphs if p)


def plain(element):
    return " ".join("".join(element.itertext()).split()) if element is not None else ""


def about(node):
    texts = [text_of(node.find("briefdescription")), text_of(node.find("detaileddescription"))]
    return "\n\n".join(t for t in texts if t)


def declaration(member):
    kind, name = member.get("kind"), plain(member.find("name"))
    if kind == "enum":
        values = [plain(v.find("name")) + (f" {plain(v.find('initializer'))}" if v.find("initializer") is not None else "")
                  for v in member.findall("enumvalue")]
        return f"enum class {name} {{ {', '.join(values)} }};"
    parameters = [plain(p.find("type")) + (f" {plain(p.find('declname'))}" if p.find("declname") is not None else "")
                  for p in member.findall("templateparamlist/param")]
    head = f"template <{', '.join(parameters)}>\n" if parameters else ""
    if kind == "typedef":
        return f"{head}using {name} = {plain(member.find('type'))};"
    type_ = plain(member.find("type"))
    text = f"{type_} {name}{plain(member.find('argsstring'))}" if kind == "function" else f"{type_} {name} {plain(member.find('initializer'))}"
    static = "static " if member.get("static") == "yes" and kind == "function" else ""
    return head + static + re.sub(r" ?([&*]) ?", r"\1 ", re.sub(r"< | >", lambda m: m.group(0).strip(), text)).strip() + ";"


def member_lines(member):
    lines = ["```cpp", declaration(member), "```", ""]
    return lines + ([about(member), ""] if about(member) else [])


def public(node):
    return [m for s in node.findall("sectiondef") if s.get("kind", "").startswith(("public", "user")) for m in s.findall("memberdef")
            if not plain(m.find("name")).startswith(("~", "operator=")) and m.get("kind") != "friend"]


def class_lines(node):
    kind, full = node.get("kind"), plain(node.find("compoundname"))
    lines = [f"## {kind} {full.removeprefix('lockstep::')}".replace("<", "\\<"), ""]
    if about(node):
        lines += [about(node), ""]
    bare = []  # data without a comment, together
    for member in public(node):
        if member.get("kind") == "variable" and not about(member):
            bare.append(declaration(member))
            continue
        if bare:
            lines += ["```cpp", *bare, "```", ""]
            bare = []
        lines += member_lines(member)
    return lines + (["```cpp", *bare, "```", ""] if bare else [])


def header_lines(xml):
    """The lines of each header, by its path below include/."""
    found = collections.defaultdict(list)
    for file in sorted(pathlib.Path(xml).glob("*.xml")):
        for node in ElementTree.parse(file).getroot().findall("compounddef"):
            name = plain(node.find("compoundname"))
            if node.get("kind") in ("class", "struct") and "detail" not in name and "<" not in name:
                place = node.find("location")
                found[place.get("file")].append((int(place.get("line")), class_lines(node)))
            elif node.get("kind") == "namespace" and "detail" not in name:
                for member in node.findall("sectiondef/memberdef"):
                    place = member.find("location")
                    found[place.get("file")].append((int(place.get("line")), member_lines(member)))
    return {name: [line for _, lines in sorted(parts, key=lambda part: part[0]) for line in lines] for name, parts in found.items()}
