# SPDX-License-Identifier: Apache-2.0
"""The rules of wording in CONTRIBUTING.md, as far as a program can check them.

check_texts() reads the string literals of C sources, which become log lines, errors and help; check_comments() reads their comments.
Both return (line, text, reason) for each finding. test/lint and test/structure call them for the whole tree.
"""
import re

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[^\n]*', re.M)

# Forbidden words, with the words to use instead.
TERMS = [
    (r'whoever|whomever|nobody|somebody|everybody|anybody', 'container, process, client, user: name the noun'),
    (r'anew', 'again; re-place, re-read, reconnect'),
    (r'in force', 'active; effective'),
    (r'the one before|the former', 'previous'),
    (r'told|tells', 'sent, reported, notified; logged'),
    (r'(?:is|are|was|were) (?:heard|said)', 'received; logged'),
    (r'taken for', 'treated as'),
    (r'as ever|stays? as (?:it|they)', 'is unchanged'),
    (r'looked (?:at|into)', 'checked, inspected, read'),
    (r'ask(?:s|ed)? for', 'request, requested'),
    (r'(?:put|brought|given) back', 'restored; released'),
    (r'misbehaves?', 'violates an invariant: name it'),
    (r'lends?|lent|lending', 'overcommit, overcommitted'),
    (r'set aside', 'quarantined, disabled'),
    (r'on line|off line', 'online, offline'),
    (r'(?:CPUs?|set|one) of (?:its|their) own|that are (?:its|their) own', 'exclusive'),
    (r'makes? (?:no )?sense', 'is invalid; is valid'),
    (r'turned away', 'refused'),
    (r'under way', 'in progress'),
    (r'otherwise than|nothing but', 'say it without negation'),
    (r'can not', 'cannot'),
    (r'has to be', 'must be'),
    (r'left (?:alone|out)', 'unmanaged; ignored, omitted'),
]
FORBIDDEN = [(re.compile(r'\b(?:%s)\b' % words, re.I), better) for words, better in TERMS]
# Values of the control protocol and log lines that are compared with them.
FIXED_TEXTS = {'in force'}

OPENING = re.compile(r"(it|its|that|those|these|this|they|them|one|ones|the same|the other|as above|or|but|and|nor|so|of|whoever|who|whose|whom|what|whatever|"
                     r"nobody|nothing|somebody|everybody|yet|else|is|are|was|has|may)\b", re.I)
COMMENT_TERMS = re.compile(r"\b(anew|whoever|whomever|nobody|somebody|everybody|otherwise than|as ever|in force|the one before|what becomes of|"
                           r"nothing but|misbehaves?|looked at)\b", re.I)
# A function comment begins with a verb in the third person.
FUNCTION = re.compile(r'^[ \t]*/\*(?P<text>(?:(?!\*/).)*)\*/[ \t]*\n(?:static |inline |const |unsigned |struct |enum |_\w+ |__attribute__\(\(.*?\)\)\s*)*'
                      r'(?!(?:struct|enum|typedef|extern|define)\b)\w+[\s*]+\w+\([^;{}]*\)\s*[{;]', re.S | re.M)
TAGS = re.compile(r"^(?:\[[^\]]*\] ?|For [\w.()` ]+?: |[\w.]+\.c: )*")  # thread, use, file
VERB = re.compile(r"[A-Za-z]+s\b|Call\b|[a-z]\w*(?:\(\)|_\w+)|The callbacks\b")


def texts(source):
    """Yields (line, text) of each string literal; adjacent literals are one text."""
    source = INCLUDE.sub('', source)
    line, text, end = 0, None, 0
    for m in TOKEN.finditer(source):
        if m.group()[0] != '"':
            continue
        if text is not None and re.fullmatch(r'(?:\s|PRI\w+|/\*.*?\*/|\\\n)*', source[end:m.start()], re.S):
            text += m.group()[1:-1]
        else:
            if text is not None:
                yield line, text
            line, text = source.count('\n', 0, m.start()) + 1, m.group()[1:-1]
        end = m.end()
    if text is not None:
        yield line, text


def comments(source):
    """Yields (line, text) of each comment, on one line; section lines are left out."""
    for m in re.finditer(r'/\*(.*?)\*/', source, re.S):
        body = plain(m.group(1))
        if body and 'SPDX' not in body and not body.startswith('---'):
            yield source.count('\n', 0, m.start()) + 1, body


def plain(comment):
    return re.sub(r'\s+', ' ', re.sub(r'\n\s*\*\s?', ' ', comment)).strip(' *')


def check_texts(source):
    found = []
    for line, text in texts(source):
        if ' ' not in text or text in FIXED_TEXTS:
            continue
        for words, better in FORBIDDEN:
            m = words.search(text)
            if m:
                found.append((line, text, '"%s": %s' % (m.group(), better)))
    return found


def check_comments(source):
    found = []
    for line, body in comments(source):
        opening, term = OPENING.match(body), COMMENT_TERMS.search(body)
        if opening:
            found.append((line, body, 'begins with "%s": name the subject' % opening.group()))
        elif term:
            found.append((line, body, '"%s": see the terms in CONTRIBUTING.md' % term.group()))
    for m in FUNCTION.finditer(source):
        body = plain(m.group('text'))
        if body.startswith('---') or 'SPDX' in body:
            continue
        if not VERB.match(TAGS.sub('', body)):
            found.append((source.count('\n', 0, m.start()) + 1, body, 'a function comment begins with a verb such as "Returns"'))
    return found
