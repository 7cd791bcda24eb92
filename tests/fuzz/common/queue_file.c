/* Queue files: what the writer wrote reads back, and whatever a damaged file
 * holds, a file that passes its checksums is one that the writer writes to the
 * same bytes (marks taken as pending). */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "spool/format.h"

#define RCPTS_MAX 8

struct mail {
	char *sender, *rcpts[RCPTS_MAX], *content;
	struct dsn_mail dsn;
	struct dsn_rcpt wishes[RCPTS_MAX];
	size_t nrcpts, content_len;
};

static int
memory_file(int *fd, const char *name)
{
	if (*fd < 0)
		*fd = memfd_create(name, MFD_CLOEXEC);
	MUST(*fd >= 0);
	MUST(ftruncate(*fd, 0) == 0 && lseek(*fd, 0, SEEK_SET) == 0);
	return *fd;
}

/* A wish as it is written somewhere: right or wrong. */
static void
take_text(struct fuzz_in *in, char *out, size_t size)
{
	char *text = fuzz_string(in);

	snprintf(out, size, "%s", text);
	free(text);
}

static void
take_wishes(struct fuzz_in *in, struct mail *m)
{
	const uint8_t which = (uint8_t)fuzz_number(in, 1);

	if (which & 1)
		m->dsn.ret = (uint8_t)fuzz_number(in, 1);
	if (which & 2)
		take_text(in, m->dsn.envid, sizeof(m->dsn.envid));
	for (size_t i = 0; i < m->nrcpts; i++) {
		if (which & 4)
			m->wishes[i].notify = (uint8_t)fuzz_number(in, 1);
		if (which & 8)
			take_text(
			    in, m->wishes[i].orcpt, sizeof(m->wishes[i].orcpt));
	}
}

static void
take_mail(struct fuzz_in *in, struct mail *m)
{
	m->sender = fuzz_string(in);
	m->nrcpts = fuzz_number(in, 1) % (RCPTS_MAX + 1);
	for (size_t i = 0; i < m->nrcpts; i++)
		m->rcpts[i] = fuzz_string(in);
	take_wishes(in, m);
	m->content = fuzz_rest(in, &m->content_len);
}

static void
mail_done(struct mail *m)
{
	free(m->sender);
	for (size_t i = 0; i < m->nrcpts; i++)
		free(m->rcpts[i]);
	free(m->content);
}

/* Printable ASCII in xtext, with a type in front of it where there has to be
 * one: written apart from base/dsn.c on purpose. */
static bool
model_xtext(const char *s, bool with_type)
{
	static const char hex[] = "0123456789ABCDEF";
	const char *semicolon = strchr(s, ';');

	if (s[0] == '\0')
		return true;
	if (with_type) {
		size_t n = strspn(s,
		    "abcdefghijklmnopqrstuvwxyz"
		    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		    "0123456789-");

		if (semicolon == NULL || s + n != semicolon || n == 0 ||
		    n > 40 || semicolon[1] == '\0')
			return false;
		s = semicolon + 1;
	}
	for (; *s != '\0'; s++) {
		if (*s < 33 || *s > 126 || *s == '=')
			return false;
		if (*s != '+')
			continue;
		if (s[1] < '2' || s[1] > '7' || s[2] == '\0' ||
		    strchr(hex, s[2]) == NULL || strncmp(s, "+7F", 3) == 0)
			return false;
		s += 2;
	}
	return true;
}

static int
model_wish(uint8_t notify, const char *orcpt)
{
	return (notify == 1 || (notify < 16 && notify % 2 == 0)) &&
		model_xtext(orcpt, true)
	    ? 0
	    : -EBADRQC;
}

/* What the writer is to answer. */
static int
model_write(const struct mail *m)
{
	int r = m->sender[0] == '\0'
	    ? 0
	    : address_check(m->sender, strlen(m->sender));

	if (r == 0 &&
	    ((m->dsn.ret != 0 && m->dsn.ret != 'F' && m->dsn.ret != 'H') ||
		!model_xtext(m->dsn.envid, false)))
		r = -EBADRQC;
	for (size_t i = 0; r == 0 && i < m->nrcpts; i++) {
		r = address_check(m->rcpts[i], strlen(m->rcpts[i]));
		if (r == 0)
			r = model_wish(m->wishes[i].notify, m->wishes[i].orcpt);
	}
	return r < 0 ? r : m->nrcpts == 0 ? -EDESTADDRREQ : 0;
}

static int
write_mail(const struct mail *m, const struct queue_file *as, int fd)
{
	struct queue_file_writer w;
	int r;

	MUST(queue_file_writer_init(&w, &spool_sys_real, fd, 0) == 0);
	w.file.arrival_wall = as->arrival_wall;
	w.file.queue = as->queue;
	w.file.uid = as->uid;
	w.file.nonce = as->nonce;
	(void)queue_file_add_content(&w, m->content, m->content_len);
	(void)queue_file_add_sender(&w, m->sender, strlen(m->sender));
	(void)queue_file_add_dsn(&w, &m->dsn);
	for (size_t i = 0; i < m->nrcpts; i++) {
		(void)queue_file_add_rcpt(&w, m->rcpts[i], strlen(m->rcpts[i]));
		(void)queue_file_add_rcpt_dsn(&w, &m->wishes[i]);
	}
	r = queue_file_finish(&w);
	queue_file_writer_done(&w);
	return r;
}

/* ---- a file that reads well ---- */

static bool
have_same_bytes(int a, int b, uint64_t len)
{
	char x[512], y[512];
	uint64_t off;

	for (off = 0; off < len; off += sizeof(x)) {
		size_t n =
		    len - off < sizeof(x) ? (size_t)(len - off) : sizeof(x);

		if (io_pread_all(a, x, n, (int64_t)off) != (int64_t)n ||
		    io_pread_all(b, y, n, (int64_t)off) != (int64_t)n ||
		    memcmp(x, y, n) != 0)
			return false;
	}
	return true;
}

/* All that the file says, as a mail again; its marks become pending. */
static void
take_back(int fd, const struct queue_file *file, struct mail *m)
{
	struct queue_rcpt_cursor c;
	struct queue_rcpt rcpt;
	struct buf sender = { 0 };

	memset(m, 0, sizeof(*m));
	MUST(queue_file_sender(fd, file, &sender) == 0);
	MUST(queue_file_dsn(fd, file, &m->dsn) == 0);
	m->sender = strdup(buf_str(&sender));
	MUST(strlen(m->sender) == sender.len);
	buf_done(&sender);
	queue_rcpt_begin(&c, file);
	while (queue_rcpt_next(&c, fd, &rcpt) > 0) {
		MUST(rcpt.index == m->nrcpts);
		if (m->nrcpts == RCPTS_MAX)
			break;
		MUST(strlen(rcpt.address) == rcpt.len);
		m->wishes[m->nrcpts] = rcpt.dsn;
		m->rcpts[m->nrcpts++] = strdup(rcpt.address);
		MUST(queue_file_mark(
			 &spool_sys_real, fd, rcpt.offset, RCPT_PENDING) == 0);
	}
	m->content_len = file->content_len;
	m->content = malloc(m->content_len + 1);
	MUST(io_pread_all(fd, m->content, m->content_len,
		 (int64_t)file->content_off) == (int64_t)m->content_len);
}

/* All but the flags, which say what the content has. */
static bool
is_same(const struct queue_file *a, const struct queue_file *b)
{
	return a->size == b->size && a->content_off == b->content_off &&
	    a->content_len == b->content_len && a->env_off == b->env_off &&
	    a->env_len == b->env_len && a->rcpt_off == b->rcpt_off &&
	    a->rcpt_len == b->rcpt_len && a->rcpt_count == b->rcpt_count &&
	    a->queue == b->queue && a->arrival_wall == b->arrival_wall &&
	    a->uid == b->uid && a->nonce == b->nonce;
}

static void
check_whole(int fd, const struct queue_file *file)
{
	static int copy = -1;
	struct queue_file got;
	struct mail m;

	take_back(fd, file, &m);
	if (m.nrcpts == file->rcpt_count) {
		MUST(write_mail(&m, file, memory_file(&copy, "copy")) == 0);
		MUST(queue_file_read(copy, &got) == 0);
		/* Version 2 without a wish is read, and not written. */
		MUST(got.version <= file->version);
		MUST(is_same(&got, file));
		MUST(
		    have_same_bytes(fd, copy, file->size - QUEUE_FILE_TRAILER));
	}
	mail_done(&m);
}

/* Whatever is in the file: bounded, and -EBADMSG or right. */
static int
check_file(int fd)
{
	struct queue_rcpt_cursor c;
	struct queue_rcpt rcpt;
	struct queue_file file;
	uint64_t end;
	int r;

	FUZZ_FILL(file);
	r = queue_file_read(fd, &file);
	if (r < 0) {
		MUST(r == -EBADMSG && FUZZ_UNTOUCHED(file));
		MUST(queue_file_reason()[0] != '\0');
		return r;
	}
	end = file.rcpt_off + file.rcpt_len;
	queue_rcpt_begin(&c, &file);
	while ((r = queue_rcpt_next(&c, fd, &rcpt)) > 0) {
		MUST(rcpt.index < file.rcpt_count);
		MUST(rcpt.offset >= file.rcpt_off && rcpt.offset < end);
		MUST(address_check(rcpt.address, rcpt.len) == 0);
	}
	MUST(r == 0 || r == -EBADMSG);
	MUST(r < 0 || c.index == file.rcpt_count);
	r = queue_file_verify(fd, &file);
	MUST(r == 0 || r == -EBADMSG);
	if (r == 0)
		check_whole(fd, &file);
	return r;
}

/* ---- damage ---- */

static void
put32(unsigned char *out, uint32_t value)
{
	memcpy(out, &value, sizeof(value));
}

/* Make the checksums of the trailer right again. */
static void
repair(int fd, const struct queue_file *was)
{
	unsigned char trailer[QUEUE_FILE_TRAILER], head[4096];
	off_t size = lseek(fd, 0, SEEK_END);
	size_t head_len = was->env_off;

	if (size < QUEUE_FILE_TRAILER || head_len > sizeof(head))
		return;
	MUST(io_pread_all(fd, trailer, sizeof(trailer),
		 size - QUEUE_FILE_TRAILER) == sizeof(trailer));
	if (io_pread_all(fd, head, head_len, 0) == (int64_t)head_len)
		put32(trailer + 88, format_crc(0, head, head_len));
	put32(trailer + 124, format_crc(0, trailer, 124));
	MUST(pwrite(fd, trailer, sizeof(trailer), size - QUEUE_FILE_TRAILER) ==
	    sizeof(trailer));
}

struct damage {
	size_t n;
	uint8_t repair;
	struct {
		uint16_t off;
		uint8_t value;
	} at[8];
	int16_t longer;
};

static void
take_damage(struct fuzz_in *in, struct damage *d)
{
	uint8_t how = (uint8_t)fuzz_number(in, 1);

	d->n = how & 7;
	d->repair = how & 8;
	d->longer = how & 16 ? (int16_t)fuzz_number(in, 2) : 0;
	for (size_t i = 0; i < d->n; i++) {
		d->at[i].off = (uint16_t)fuzz_number(in, 2);
		d->at[i].value = (uint8_t)fuzz_number(in, 1);
	}
}

/* Offsets count from the end, where the records are. */
static void
do_damage(int fd, const struct damage *d, const struct queue_file *was)
{
	off_t size = (off_t)was->size;

	for (size_t i = 0; i < d->n; i++)
		MUST(pwrite(fd, &d->at[i].value, 1,
			 size - 1 - d->at[i].off % size) == 1);
	if (d->longer != 0)
		MUST(ftruncate(
			 fd, size + d->longer < 0 ? 0 : size + d->longer) == 0);
	if (d->repair)
		repair(fd, was);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct fuzz_in in = { data, size };
	struct queue_file as = { 0 }, file;
	struct damage damage;
	struct mail mail = { 0 };
	int r;

	memory_file(&fd, "mail");
	take_damage(&in, &damage);
	as.arrival_wall = (usec_t)(fuzz_number(&in, 7));
	as.queue = (uint32_t)fuzz_number(&in, 2) % (QUEUE_NUM_MAX + 1);
	as.uid = (uint32_t)fuzz_number(&in, 4);
	as.nonce = (uint8_t)fuzz_number(&in, 1);
	take_mail(&in, &mail);
	r = write_mail(&mail, &as, fd);
	MUST(r == model_write(&mail));
	if (r == 0) {
		MUST(check_file(fd) == 0);
		MUST(queue_file_read(fd, &file) == 0);
		MUST(file.rcpt_count == mail.nrcpts &&
		    file.content_len == mail.content_len);
		do_damage(fd, &damage, &file);
		(void)check_file(fd);
	}
	mail_done(&mail);
	return 0;
}
