/* Content of 8 bit, by what a server offers and a transport wants. */
#include "tests/unit/deliver-smtp/play.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define SEVEN "250-mx\n250 SIZE\n|"
#define EIGHT "250-mx\n250 8BITMIME\n|"
#define UTF8  "250-mx\n250-8BITMIME\n250 SMTPUTF8\n|"
#define TAKES "250 ok\n|250 ok\n|354 go\n|"
#define REST  "RCPT TO:<a@x>\r\nDATA\r\n"

static const struct row {
	const char *name;
	enum conf_eight eight;
	struct dialog_survey found; /* fault, eight, header, header_utf8 */
	const char *offers, *said, *results;
} rows[] = {
	{ "8BITMIME offered", CONF_EIGHT_CONVERT, { 0, true, false, true },
	    EIGHT, "MAIL FROM:<s@y> BODY=8BITMIME\r\n", "D4.4.2" },
	{ "8BITMIME offered, sent as it is anyway", CONF_EIGHT_AS_IS,
	    { 0, true, false, true }, EIGHT,
	    "MAIL FROM:<s@y> BODY=8BITMIME\r\n", "D4.4.2" },
	{ "8BITMIME missing: sent as it is", CONF_EIGHT_AS_IS,
	    { 0, true, false, true }, SEVEN TAKES,
	    "MAIL FROM:<s@y> SIZE=100\r\n" REST "{content}", "D4.4.2" },
	{ "8BITMIME missing: refused", CONF_EIGHT_REFUSE,
	    { 0, true, false, true }, SEVEN, "QUIT\r\n", "F5.6.3" },
	{ "8BITMIME missing: converted, of a size that is not known",
	    CONF_EIGHT_CONVERT, { 0, true, false, true }, SEVEN TAKES,
	    "{survey}MAIL FROM:<s@y>\r\n" REST "{converted}", "D4.4.2" },
	{ "8BITMIME missing: the survey finds none", CONF_EIGHT_CONVERT,
	    { 0, false, false, true }, SEVEN TAKES,
	    "{survey}MAIL FROM:<s@y> SIZE=100\r\n" REST "{content}", "D4.4.2" },
	{ "a signed part", CONF_EIGHT_CONVERT,
	    { MIME_FAULT_SIGNED, true, false, true }, SEVEN, "{survey}QUIT\r\n",
	    "F5.6.3" },
	{ "a part that is malformed", CONF_EIGHT_CONVERT,
	    { MIME_FAULT_MALFORMED, true, false, true }, SEVEN,
	    "{survey}QUIT\r\n", "F5.6.3" },
	{ "the header of a part", CONF_EIGHT_CONVERT,
	    { MIME_FAULT_HEADER, true, false, true }, SEVEN, "{survey}QUIT\r\n",
	    "F5.6.7" },
	{ "a header in UTF-8, SMTPUTF8 offered", CONF_EIGHT_CONVERT,
	    { 0, false, true, true }, UTF8,
	    "{header}MAIL FROM:<s@y> BODY=8BITMIME SMTPUTF8\r\n", "D4.4.2" },
	{ "a header in UTF-8, SMTPUTF8 missing", CONF_EIGHT_CONVERT,
	    { 0, false, true, true }, EIGHT,
	    "MAIL FROM:<s@y> BODY=8BITMIME\r\n", "D4.4.2" },
	{ "a header in UTF-8, SMTPUTF8 and 8BITMIME missing",
	    CONF_EIGHT_CONVERT, { 0, false, true, true }, SEVEN,
	    "{survey}QUIT\r\n", "F5.6.7" },
	{ "a header in UTF-8, SMTPUTF8 missing, sent as it is",
	    CONF_EIGHT_AS_IS, { 0, false, true, true }, SEVEN,
	    "MAIL FROM:<s@y> SIZE=100\r\n", "D4.4.2" },
	{ "a header in no UTF-8, 8BITMIME offered", CONF_EIGHT_CONVERT,
	    { 0, false, true, false }, UTF8,
	    "{header}MAIL FROM:<s@y> BODY=8BITMIME\r\n", "D4.4.2" },
	{ "a header in no UTF-8, 8BITMIME missing", CONF_EIGHT_CONVERT,
	    { 0, false, true, false }, SEVEN, "{survey}QUIT\r\n", "F5.6.7" },
};

Test(dialog_eight, N13_what_the_server_lacks)
{
	static const char hello[] = "EHLO me.example\r\n";
	char script[512];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		struct play p;
		struct dialog_task task = play_task(&p, 1);

		task.eight_bit = true;
		task.eight = row->eight;
		p.survey = row->found;
		snprintf(script, sizeof(script), "220 mx\n|%s", row->offers);
		play(&p, &task, script);
		cr_expect_str_eq(buf_str(&p.said) + strlen(hello), row->said,
		    "%s: said %s", row->name, buf_str(&p.said));
		cr_expect_str_eq(buf_str(&p.results), row->results, "%s: %s",
		    row->name, buf_str(&p.results));
		play_done(&p);
	}
}

/* A server that ends while the message is looked through: nothing was said of
 * the message, and over a connection that was kept nothing of the site. */
Test(dialog, N25_the_end_of_a_connection_in_a_survey)
{
	static const struct {
		const char *says;
	} ends[] = {
		{ "" },
		{ "421 bye\r\n" },
		{ "450 no\r\n" },
		{ "250 what\r\n" },
		{ "354 what\r\n" },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(ends); i++) {
		struct dialog d;
		struct play p;
		struct dialog_task task = play_task(&p, 1);

		task.eight_bit = true;
		cr_assert_eq(dialog_init(&d, &task, NULL, NULL), 0);
		dialog_feed(&d, "220 mx\r\n", 8);
		dialog_feed(&d, "250 mx\r\n", 8);
		cr_assert_eq(d.state, DIALOG_SURVEY);
		dialog_feed(&d, ends[i].says, strlen(ends[i].says));
		dialog_lost(&d, DIALOG_LOST_CLOSED);
		cr_expect(
		    d.end.try_next && d.end.site_failed, "%s", ends[i].says);
		dialog_done(&d);
		play_done(&p);
	}
}
