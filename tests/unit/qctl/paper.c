#include "paper.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qctl/read/worker.h"

static const char content[] = "Subject: x\n\n1\033\t\n";

static void
write_file(struct paper *p, const char *sender, const char *const *rcpts,
    const struct dsn_mail *mail, const struct dsn_rcpt *wish)
{
	struct queue_file_writer w;
	struct queue_rcpt_cursor cursor;
	struct queue_rcpt rcpt;

	p->m.fd = memfd_create("message", 0);
	cr_assert_eq(
	    queue_file_writer_init(&w, &spool_sys_real, p->m.fd, 0), 0);
	w.file.arrival_wall = 1700000000123456;
	w.file.queue = 7;
	w.file.uid = 1000;
	cr_assert_eq(
	    queue_file_add_content(&w, content, sizeof(content) - 1), 0);
	cr_assert_eq(queue_file_add_sender(&w, sender, strlen(sender)), 0);
	cr_assert_eq(queue_file_add_dsn(&w, mail), 0);
	for (; *rcpts != NULL; rcpts++) {
		cr_assert_eq(
		    queue_file_add_rcpt(&w, *rcpts, strlen(*rcpts)), 0);
		cr_assert_eq(queue_file_add_rcpt_dsn(&w, wish), 0);
	}
	cr_assert_eq(queue_file_finish(&w), 0);
	p->m.file = w.file;
	queue_file_writer_done(&w);
	queue_rcpt_begin(&cursor, &p->m.file);
	while (queue_rcpt_next(&cursor, p->m.fd, &rcpt) > 0)
		if (rcpt.index == 1 || rcpt.index == 2)
			cr_assert_eq(
			    queue_file_mark(&spool_sys_real, p->m.fd,
				rcpt.offset,
				rcpt.index == 1 ? RCPT_DONE : RCPT_FAILED),
			    0);
}

void
paper_open(struct paper *p, const char *sender, const char *const *rcpts)
{
	static const struct dsn_mail no_mail;
	static const struct dsn_rcpt no_wish;

	paper_open_wishes(p, sender, rcpts, &no_mail, &no_wish);
}

void
paper_open_wishes(struct paper *p, const char *sender, const char *const *rcpts,
    const struct dsn_mail *mail, const struct dsn_rcpt *wish)
{
	unsigned dir;

	*p = (struct paper){ .sp = { .path = strdup("/q/queue7"),
				 .queue = 7,
				 .split = 23,
				 .fd = -1 } };
	for (dir = 0; dir < SPOOL_NDIRS; dir++)
		p->sp.dir[dir] = -1;
	p->m = (struct message){ .sp = &p->sp,
		.dir = SPOOL_DEFERRED,
		.inode = 4711,
		.name = "4711",
		.id = "ID1" };
	write_file(p, sender, rcpts, mail, wish);
	p->m.dsn = *mail;
	cr_assert_eq(buf_add_str(&p->m.sender, sender), 0);
	cr_assert_eq(pipe2(p->ends, O_NONBLOCK), 0);
	p->w = (struct worker){ .fd = p->ends[1], .queue = 7 };
}

void
paper_close(struct paper *p)
{
	message_close(&p->m);
	buf_done(&p->w.out);
	close(p->ends[0]);
	close(p->ends[1]);
	free(p->sp.path);
}

const char *
paper_text(struct paper *p)
{
	static char text[65536];
	struct frame_head head;
	size_t used = 0;

	p->w.sent_mono = 0; /* so it is sent at once */
	p->w.sent_mono = 0; /* so it is sent at once */
	worker_message(&p->w, 0);
	while (read(p->ends[0], &head, sizeof(head)) == sizeof(head)) {
		cr_assert_lt(used + head.len, sizeof(text));
		cr_assert_eq(
		    read(p->ends[0], text + used, head.len), (ssize_t)head.len);
		used += head.len;
	}
	text[used] = '\0';
	return text;
}
