#include "submit/submit.h"

#include <stdio.h>

#include "base/date.h"

struct room_want
submit_reserve(const struct conf *conf, enum room_writer writer)
{
	return (struct room_want){ conf->queue_minfree_bytes,
		conf->queue_minfree_inodes, writer };
}

struct accept_options
submit_accept_options(
    const struct conf *conf, enum spool_dir dir, enum room_writer writer)
{
	const uint64_t limit = conf->message_size_limit;

	return (struct accept_options){
		.dir = dir,
		.max_content = limit == 0 ? 0 : limit + ACCEPT_ADDED_MAX,
		.reserve = submit_reserve(conf, writer),
		.strict = conf->strict_sync,
	};
}

enum room_writer
submit_writer(uid_t uid)
{
	return uid == 0 ? ROOM_ROOT : ROOM_USER;
}

int
submit_received(const struct accept *a, const char *host, const char *eol,
    char out[SUBMIT_RECEIVED_MAX])
{
	const struct queue_file *file = &a->writer.file;
	struct queue_id id = { .arrival_wall = file->arrival_wall,
		.nonce = file->nonce,
		.queue = file->queue,
		.inode = a->inode };
	char text[QUEUE_ID_SIZE], date[DATE_SIZE];

	queue_id_format(&id, text);
	date_format(file->arrival_wall, date);
	return snprintf(out, SUBMIT_RECEIVED_MAX,
	    "Received: by %.255s (qscheduler, from uid %u)%s"
	    "\tid %s; %s%s",
	    host, (unsigned)file->uid, eol, text, date, eol);
}
