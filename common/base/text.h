/* base/text.h - foreign bytes made printable: for log lines, reasons, and
 * terminals. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/buf.h"

/* Append len bytes for a reader. Each byte of a character that no reader sees,
 * or that changes what is seen of other characters, becomes `?`: of Unicode's
 * categories Cc, Cf, Co, Cn, Cs, Zl and Zp, and of the property
 * Default_Ignorable_Code_Point, by libunistring. So does a byte that is not
 * part of valid UTF-8. At most max bytes are added, never half a character.
 * -ENOMEM. */
int text_clean(struct buf *out, const char *s, size_t len, size_t max);
/* The same of control characters (Cc) and of bytes that are no UTF-8 alone: for
 * text that a program reads. */
int text_to_utf8(struct buf *out, const char *s, size_t len, size_t max);
/* True: text_to_utf8() would change nothing. */
bool text_is_utf8(const char *s, size_t len);

/* Append `s' cleaned, for a message that repeats what a user typed; above
 * TEXT_QUOTE_MAX bytes it ends in three dots. -ENOMEM. */
#define TEXT_QUOTE_MAX 48
int text_quote(struct buf *out, const char *s);
/* Append a complaint about the word s: `"S" is …` if why begins with "is ", and
 * `"S": WHY` otherwise. s is cleaned and cut as by text_quote(). -ENOMEM. */
int text_complain(struct buf *out, const char *s, const char *why);

/* Append `s' (UTF-8) in at most max bytes, max >= 8. Of a longer text the
 * middle is left out, with "..." in its place: the beginning names the object,
 * the end has the cause. Never half a character. -ENOMEM. */
int text_shorten(struct buf *out, const char *s, size_t max);
/* Append `s' (UTF-8) in at most max bytes, max >= 8. A longer text ends behind
 * a word, or in a word that fills more than half of it, with "...". Never half
 * a character. -ENOMEM. */
int text_cut(struct buf *out, const char *s, size_t max);

/* The next word of a list with blanks or commas between the words, and the
 * number of octets of that word. *rest moves behind the word. NULL: the list
 * ends. */
const char *text_next_word(const char **rest, size_t *ret_len);

static inline bool
text_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* "" of 1, else "s". */
static inline const char *
text_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* `*` in pattern stands for any bytes; case is ignored (ASCII). */
bool text_matches(const char *pattern, const char *text);

#endif
