/* DELIVER, the frame that an agent gets: a job is what the frame said, and
 * what the frame may not say makes no job. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/address.h"
#include "config/conf.h"

#define FILE_SIZE 1000

static struct msg_str
as_str(const char *s)
{
	return (struct msg_str){ s, strlen(s) };
}

static bool
is_plain(const struct msg_str *s, size_t min, size_t max)
{
	return s->len >= min && s->len <= max &&
	    (s->len == 0 || address_check(s->data, s->len) != -EILSEQ);
}

static void
check_job(const struct agent_delivery *d, const struct msg_DELIVER *f)
{
	struct buf rcpts = { 0 };

	MUST(d->number == f->job && d->kind == f->kind &&
	    d->kind < AGENT_NKINDS);
	MUST(is_plain(&f->id, 1, AGENT_ID_MAX));
	MUST(is_plain(&f->transport, 1, AGENT_NAME_MAX));
	MUST(is_plain(&f->nexthop, 0, AGENT_NEXTHOP_MAX));
	MUST(is_plain(&f->sender, 0, ADDRESS_MAX));
	MUST(strcmp(d->id, f->id.data) == 0);
	MUST(strcmp(d->transport, f->transport.data) == 0);
	MUST(strcmp(d->nexthop, f->nexthop.data) == 0);
	MUST(strcmp(d->sender, f->sender.data) == 0);
	MUST(d->content_len <= FILE_SIZE);
	MUST(d->content_off <= FILE_SIZE - d->content_len);
	MUST(d->nrcpts == f->nrcpts && d->nrcpts >= 1);
	MUST(d->nrcpts <= AGENT_RCPTS_MAX);
	for (uint32_t i = 0; i < d->nrcpts; i++) {
		MUST(!d->rcpts[i].reported);
		MUST(
		    agent_rcpt_add(&rcpts, d->rcpts[i].index,
			d->rcpts[i].address, strlen(d->rcpts[i].address)) == 0);
	}
	MUST(rcpts.len == f->rcpts.len &&
	    memcmp(rcpts.data, f->rcpts.data, rcpts.len) == 0);
	buf_done(&rcpts);
}

/* Recipients of our own, or bytes as they come. */
static void
take_rcpts(
    struct fuzz_in *in, bool made, struct buf *out, struct msg_DELIVER *f)
{
	char *s;
	size_t len;

	if (!made) {
		s = fuzz_rest(in, &len);
		MUST(buf_add(out, s, len) == 0);
		free(s);
	}
	while (made && in->left > 4 && f->nrcpts < 120) {
		uint32_t index = (uint32_t)fuzz_number(in, 4);

		s = fuzz_string(in);
		if (agent_rcpt_add(out, index, s, strlen(s)) == 0)
			f->nrcpts++;
		free(s);
	}
	f->rcpts = (struct msg_str){ buf_str(out), out->len };
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int file = -1;
	struct fuzz_in in = { data, size };
	struct msg_DELIVER f = { .job = 7 };
	struct agent_delivery *d = NULL;
	struct buf rcpts = { 0 };
	const char *what = NULL;
	uint8_t way = (uint8_t)fuzz_number(&in, 1);
	char *text[4], *copy;
	int r, fd;

	if (file < 0) {
		MUST(ftruncate(fuzz_file("mail", "", 0), FILE_SIZE) == 0);
		file = open(fuzz_path("mail"), O_RDONLY | O_CLOEXEC);
		MUST(file >= 0);
	}
	f.kind = way & 7;
	f.content_off = fuzz_number(&in, way & 8 ? 8 : 1);
	f.content_len = fuzz_number(&in, way & 8 ? 8 : 2);
	for (size_t i = 0; i < ARRAY_LEN(text); i++)
		text[i] = fuzz_string(&in);
	f.id = as_str(text[0]);
	f.transport = as_str(text[1]);
	f.nexthop = as_str(text[2]);
	f.sender = as_str(text[3]);
	if (!(way & 16))
		f.nrcpts = (uint32_t)fuzz_number(&in, 1);
	take_rcpts(&in, way & 16, &rcpts, &f);
	copy = malloc(f.rcpts.len + 1);
	MUST(copy != NULL);
	memcpy(copy, f.rcpts.data, f.rcpts.len);
	f.rcpts.data = copy;
	fd = dup(file);
	r = agent_delivery_new(&f, fd, &d, &what);
	if (r == 0) {
		check_job(d, &f);
		agent_delivery_free(&d);
	} else {
		MUST(r == -EBADMSG && what != NULL && d == NULL);
		MUST(close(fd) == 0);
	}
	free(copy);
	buf_done(&rcpts);
	for (size_t i = 0; i < ARRAY_LEN(text); i++)
		free(text[i]);
	return 0;
}
