/* Content of 8 bit for a server that takes 7 bit alone. */
#include "deliver-smtp/mime/mime.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct mime_plan
survey(const char *content, size_t len, size_t cut)
{
	struct mime_plan plan;
	struct mime *m;
	size_t i, n;

	cr_assert_eq(mime_new(NULL, &m), 0);
	for (i = 0; i < len; i += n) {
		n = len - i < cut ? len - i : cut;
		cr_assert_eq(mime_feed(m, content + i, n, NULL), 0);
	}
	cr_assert_eq(mime_end(m, NULL), 0);
	plan = *mime_plan(m);
	mime_free(&m);
	return plan;
}

static void
convert(const struct mime_plan *plan, const char *content, size_t len,
    size_t cut, struct buf *out)
{
	struct mime *m;
	size_t i, n;

	cr_assert_eq(mime_new(plan, &m), 0);
	for (i = 0; i < len; i += n) {
		n = len - i < cut ? len - i : cut;
		cr_assert_eq(mime_feed(m, content + i, n, out), 0);
	}
	cr_assert_eq(mime_end(m, out), 0);
	mime_free(&m);
}

#define QP   "Content-Transfer-Encoding: quoted-printable\n"
#define MULT "Content-Type: multipart/mixed; boundary=b\n"

static const struct row {
	const char *name, *content, *want;
} rows[] = {
	{ "a text",
	    "MIME-Version: 1.0\nContent-Type: text/plain\n"
	    "Content-Transfer-Encoding: 8bit\nSubject: x\n\n\xc3\xa9\n",
	    "MIME-Version: 1.0\nContent-Type: text/plain\nSubject: x\n" QP
	    "\n=C3=A9\n" },
	{ "nothing declared", "Subject: x\n\n\xe9\n",
	    "Subject: x\nMIME-Version: 1.0\n"
	    "Content-Type: text/plain; charset=unknown-8bit\n" QP "\n=E9\n" },
	{ "a type without a version", "Content-Type: text/html\n\n\xe9\n",
	    "Content-Type: text/html\nMIME-Version: 1.0\n" QP "\n=E9\n" },
	{ "no header", "\n\xe9\n",
	    "MIME-Version: 1.0\nContent-Type: text/plain; "
	    "charset=unknown-8bit\n" QP "\n=E9\n" },
	{ "a header that ends without a blank line", "A: b\nno field\n\xe9\n",
	    "A: b\nMIME-Version: 1.0\nContent-Type: text/plain; "
	    "charset=unknown-8bit\n" QP "\nno field\n=E9\n" },
	{ "names in any case, folded, with comments",
	    "mime-version: 1.0\ncontent-type: (x) multipart/mixed;\n"
	    "\tcharset=x; BOUNDARY=(y)\"a b\"\n"
	    "content-TRANSFER-encoding : (z)\n 8BIT\n\n--a b\n\n\xe9\n"
	    "--a b--\n",
	    "mime-version: 1.0\ncontent-type: (x) multipart/mixed;\n"
	    "\tcharset=x; BOUNDARY=(y)\"a b\"\n"
	    "Content-Transfer-Encoding: 7bit\n\n--a b\n" QP "\n=E9\n"
	    "--a b--\n" },
	{ "parts one by one",
	    MULT "MIME-Version: 1.0\n\npre\xe9\n--b\n"
		 "Content-Transfer-Encoding: base64\n\nAAAA\n--b\n"
		 "Content-Type: text/plain\nContent-Transfer-Encoding: 7bit\n\n"
		 "plain=\n--b\nContent-Transfer-Encoding: binary\n\n\xe9 \n"
		 "--b--\nepi\xe9",
	    MULT "MIME-Version: 1.0\n\npre?\n--b\n"
		 "Content-Transfer-Encoding: base64\n\nAAAA\n--b\n"
		 "Content-Type: text/plain\nContent-Transfer-Encoding: 7bit\n\n"
		 "plain=\n--b\n" QP "\n=E9=20\n--b--\nepi?" },
	{ "a message in a multipart in a multipart, CRLF",
	    "MIME-Version: 1.0\r\nContent-Type: multipart/x; boundary=\"o\"\r\n"
	    "Content-Transfer-Encoding: 8bit\r\n\r\n--o\r\n"
	    "Content-Type: message/rfc822\r\n"
	    "Content-Transfer-Encoding: 8bit\r\n\r\nSubject: y\r\n\r\n\xe9\r\n"
	    "--o--\r\n",
	    "MIME-Version: 1.0\r\nContent-Type: multipart/x; boundary=\"o\"\r\n"
	    "Content-Transfer-Encoding: 7bit\n\r\n--o\r\n"
	    "Content-Type: message/rfc822\r\n"
	    "Content-Transfer-Encoding: 7bit\n\r\nSubject: y\r\n"
	    "MIME-Version: 1.0\n"
	    "Content-Type: text/plain; charset=unknown-8bit\n" QP
	    "\r\n=E9\n--o--\r\n" },
	{ "a digest",
	    "MIME-Version: 1.0\nContent-Type: multipart/digest; boundary=b\n\n"
	    "--b\n\nMIME-Version: 1\n\n\xe9\n--b--\n",
	    "MIME-Version: 1.0\nContent-Type: multipart/digest; boundary=b\n\n"
	    "--b\n\nMIME-Version: 1\n" QP "\n=E9\n--b--\n" },
	{ "a part that its parent's boundary ends",
	    "MIME-Version: 1.0\n" MULT "\n--b\nContent-Type: multipart/mixed; "
	    "boundary=c\n\n--c\n\n\xe9\n--b\n\nx\n--b--\n",
	    "MIME-Version: 1.0\n" MULT "\n--b\nContent-Type: multipart/mixed; "
	    "boundary=c\n\n--c\n" QP "\n=E9\n--b\n\nx\n--b--\n" },
	{ "what only looks like a boundary",
	    "MIME-Version: 1.0\n" MULT "\n--b \t\n\n--bb\n--\n-\n\xe9\n--b--x\n"
	    "--b--",
	    "MIME-Version: 1.0\n" MULT "\n--b \t\n" QP
	    "\n=2D-bb\n=2D-\n=2D\n=E9\n=2D-b--x\n--b--" },
	{ "octets that a line may not have",
	    "\n\xe9=\t\n \n\r\n\ra\r\r\n\x01\x7f \r",
	    "MIME-Version: 1.0\nContent-Type: text/plain; "
	    "charset=unknown-8bit\n" QP
	    "\n=E9=3D=09\n=20\n\n=0Da=0D\n=01=7F =0D" },
	{ "message/global may be encoded",
	    "MIME-Version: 1.0\n" MULT "\n--b\nContent-Type: message/global\n\n"
	    "Subject: \xc3\xa9\n\n\n--b--\n",
	    "MIME-Version: 1.0\n" MULT
	    "\n--b\nContent-Type: message/global\n" QP
	    "\nSubject: =C3=A9\n\n\n--b--\n" },
};

static void
see(const struct row *row, size_t cut)
{
	const size_t len = strlen(row->content);
	struct mime_plan plan = survey(row->content, len, cut);
	struct buf out = { 0 };

	cr_expect_eq(plan.fault, MIME_FINE, "%s", row->name);
	cr_expect(plan.eight && !plan.header, "%s", row->name);
	convert(&plan, row->content, len, cut, &out);
	cr_expect_str_eq(buf_str(&out), row->want, "%s, by %zu: %s", row->name,
	    cut, buf_str(&out));
	buf_done(&out);
}

Test(mime, N25_parts_are_converted_however_they_are_cut)
{
	size_t i, cut;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		see(&rows[i], SIZE_MAX);
		for (cut = 1; cut < 9; cut++)
			see(&rows[i], cut);
	}
}

Test(mime, N25_what_cannot_be_converted_is_known)
{
	static const struct {
		const char *name, *content;
		enum mime_fault want;
	} cases[] = {
		{ "7 bit", "A: b\n\nx\n", MIME_FINE },
		{ "a coding that is none",
		    "Content-Transfer-Encoding: 8 bits\n\n\xe9\n",
		    MIME_FAULT_MALFORMED },
		{ "the same of 7 bit",
		    "Content-Transfer-Encoding: 8 bits\n\nx\n", MIME_FINE },
		{ "base64 that is not",
		    "Content-Transfer-Encoding: base64\n\n\xe9\n",
		    MIME_FAULT_MALFORMED },
		{ "twice",
		    "Content-Transfer-Encoding: 8bit\n"
		    "Content-Transfer-Encoding: 7bit\n\n\xe9\n",
		    MIME_FAULT_MALFORMED },
		{ "no boundary", "Content-Type: multipart/mixed\n\n\xe9\n",
		    MIME_FAULT_MALFORMED },
		{ "an empty boundary",
		    "Content-Type: multipart/mixed; boundary=\"\"\n\n\xe9\n",
		    MIME_FAULT_MALFORMED },
		{ "a boundary that does not come", MULT "\n--c\n\n\xe9\n",
		    MIME_FAULT_MALFORMED },
		{ "a fragment", "Content-Type: message/partial; id=1\n\n\xe9\n",
		    MIME_FAULT_MALFORMED },
		{ "a header within", MULT "\n--b\nSubject: \xe9\n\nx\n--b--\n",
		    MIME_FAULT_HEADER },
		{ "signed",
		    "Content-Type: multipart/signed; boundary=b\n\n--b\n\n"
		    "\xe9\n--b\n\nsig\n--b--\n",
		    MIME_FAULT_SIGNED },
		{ "signed, within",
		    MULT "\n--b\nContent-Type: multipart/signed; "
			 "boundary=c\n\n--c\n\n\xe9\n--c--\n--b--\n",
		    MIME_FAULT_SIGNED },
		{ "signed, beside",
		    MULT "\n--b\nContent-Type: multipart/signed; "
			 "boundary=c\n\n--c\n\nx\n--c--\n--b\n\n"
			 "\xe9\n--b--\n",
		    MIME_FINE },
	};
	struct mime_plan plan;
	size_t i, cut;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		for (cut = 1; cut < 200; cut += 99) {
			plan = survey(
			    cases[i].content, strlen(cases[i].content), cut);
			cr_expect_eq(plan.fault, cases[i].want, "%s: %d",
			    cases[i].name, plan.fault);
		}
}

Test(mime, N13_octets_of_the_header)
{
	static const struct {
		const char *content;
		bool header, utf8;
	} cases[] = {
		{ "Subject: x\n\n\xe9", false, true },
		{ "Subject: \xc3\xa9\n\n", true, true },
		{ "Subject: \xe9\n\n", true, false },
		{ "Subject: \xc3\n\n", true, false },
		{ "Subject: \xc3\xa9\xa9\n\n", true, false },
		{ "Subject: \xf0\x9f\x98\x80\n\n", true, true },
		{ "Subject: \xff\n\n", true, false },
		{ "S\xc3\xa9: x\n\n", true, true },
	};
	struct mime_plan plan;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		plan = survey(
		    cases[i].content, strlen(cases[i].content), SIZE_MAX);
		cr_expect_eq(plan.header, cases[i].header, "%zu", i);
		cr_expect_eq(plan.header_utf8, cases[i].utf8, "%zu", i);
	}
}

/* Parts and levels beyond what is kept are no fault of theirs, unless they
 * would have to change. */
Test(mime, N25_memory_is_bounded)
{
	struct buf content = { 0 };
	struct mime_plan plan;
	size_t i;

	buf_add_str(&content, MULT "\n");
	for (i = 0; i < 2 * MIME_PARTS_MAX; i++)
		buf_add_str(&content, "--b\n\nx\n");
	plan = survey(buf_str(&content), content.len, 1000);
	cr_expect_eq(plan.fault, MIME_FINE);
	buf_add_str(&content, "--b\n\n\xe9\n");
	plan = survey(buf_str(&content), content.len, 1000);
	cr_expect_eq(plan.fault, MIME_FAULT_MALFORMED);
	buf_reset(&content);
	for (i = 0; i < 100; i++)
		buf_printf(&content,
		    "Content-Type: multipart/mixed; boundary=b%zu\n\n--b%zu\n",
		    i, i);
	plan = survey(buf_str(&content), content.len, 1000);
	cr_expect_eq(plan.fault, MIME_FINE);
	buf_add_str(&content, "\n\xe9\n");
	plan = survey(buf_str(&content), content.len, 1000);
	cr_expect_eq(plan.fault, MIME_FAULT_MALFORMED);
	buf_done(&content);
}

Test(mime, N25_lines_of_quoted_printable_are_short)
{
	struct buf content = { 0 }, out = { 0 };
	struct mime_plan plan;
	size_t i;

	buf_add_str(&content, "MIME-Version: 1.0\n\n");
	for (i = 0; i < 5000; i++)
		buf_add_char(&content, "a-\xe9 \t"[i * 7 % 5]);
	plan = survey(buf_str(&content), content.len, SIZE_MAX);
	convert(&plan, buf_str(&content), content.len, SIZE_MAX, &out);
	for (const char *p = strstr(buf_str(&out), "\n\n") + 2; *p != '\0';) {
		const size_t n = strcspn(p, "\n");

		cr_expect_leq(n, 76);
		cr_expect_neq(*p, '-');
		cr_expect(n == 0 || strchr(" \t", p[n - 1]) == NULL);
		p += n + (p[n] == '\n');
	}
	buf_done(&content);
	buf_done(&out);
}
