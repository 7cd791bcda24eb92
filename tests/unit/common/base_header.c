#include "base/header.h"

#include <criterion/criterion.h>
#include <string.h>

Test(base_header, automatic)
{
	static const struct {
		const char *head;
		bool want;
	} cases[] = {
		{ "Precedence: bulk\n\n", true },
		{ "Subject: x\r\nPRECEDENCE:list\r\n\r\n", true },
		{ "Precedence: junk (x)\n", true },
		{ "Precedence:\n bulk\n", true },
		{ "Precedence: first-class\n", false },
		{ "Precedence: bulky\n", false },
		{ "Precedence:\n\nbulk\n", false },
		{ "Auto-Submitted: auto-generated\n", true },
		{ "Auto-Submitted: auto-replied; owner-email=\"a@b\"\n", true },
		{ "Auto-Submitted: no\n", false },
		{ "Auto-Submitted: NO (really)\n", false },
		{ "Auto-Submitted:\n", true },
		{ "Auto-Submitted: none\n", true },
		{ "List-Id: <a.b>\n", true },
		{ "List-Unsubscribe: <mailto:a@b>\n", true },
		{ "List-x\n", false },
		{ "Listing: x\n", false },
		{ "Subject: x\n List-Id: y\n", false },
		{ "Subject: x\n\nList-Id: y\n", false },
		{ "\nList-Id: y\n", false },
		{ "\r\nList-Id: y\n", false },
		{ "X-Precedence: bulk\n", false },
		{ "Precedence", false },
		{ "Precedence: bul", false },
		{ "", false },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		cr_expect_eq(
		    header_is_automatic(cases[i].head, strlen(cases[i].head)),
		    cases[i].want, "%zu", i);
}

Test(base_header, message_id)
{
	static const struct {
		const char *head, *want;
	} cases[] = {
		{ "Message-ID: <a@b>\n\nx", "a@b" },
		{ "Received: x\n\tby y\nMESSAGE-id : <a@b> (c)\r\n\r\n",
		    "a@b" },
		{ "Message-Id:\n  <a@b>\n", "a@b" },
		{ "Message-ID:\r\n\t<a@b>\r\n", "a@b" },
		{ "Message-ID: a@b\nTo: x\n", "a@b" },
		{ "Message-ID: <a@b>\nMessage-ID: <c@d>\n", "a@b" },
		{ "Message-ID:\nTo: x\n", "" },
		{ "Message-ID: <>\n", "" },
		{ "Subject: x\n\nMessage-ID: <a@b>\n", "" },
		{ "Subject: x\r\n\r\nMessage-ID: <a@b>\n", "" },
		{ " Message-ID: <a@b>\n", "" },
		{ "X-Message-ID: <a@b>\n", "" },
		{ "Message-IDs: <a@b>\n", "" },
		{ "Message-ID: <a@", "" },
		{ "Message-ID: ", "" },
		{ "Message-ID", "" },
		{ "Message-ID: <0123456789abcdefgh@x>\n", "0123456789abcde" },
		{ "", "" },
		{ "\n", "" },
	};
	char out[16];
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		header_message_id(
		    cases[i].head, strlen(cases[i].head), out, sizeof(out));
		cr_expect_str_eq(out, cases[i].want, "%zu: \"%s\"", i, out);
	}
}

Test(base_header, C12_a_folded_message_id)
{
	static const struct {
		const char *head, *want;
	} cases[] = {
		{ "Message-ID: <abc\n @d>\n", "abc@d" },
		{ "Message-ID:\r\n <abc\r\n\t @d\r\n >\r\n\r\n", "abc@d" },
		{ "Message-ID: <abc \n @d>\n", "abc@d" },
		{ "Message-ID: <\n abc@d>\n", "abc@d" },
		{ "Message-ID: <\n 0123456789\n abcdefgh>\n",
		    "0123456789abcde" },
		/* No fold: the id ends. */
		{ "Message-ID: <abc def>\n", "abc" },
		{ "Message-ID: <abc\nTo: x>\n", "abc" },
		{ "Message-ID: abc\n def\n", "abc" },
		/* Cut by the end of the buffer. */
		{ "Message-ID: <abc\n ", "" },
		{ "Message-ID: <abc\n @d", "" },
	};
	char out[16];
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		header_message_id(
		    cases[i].head, strlen(cases[i].head), out, sizeof(out));
		cr_expect_str_eq(
		    out, cases[i].want, "%s: \"%s\"", cases[i].head, out);
	}
}
