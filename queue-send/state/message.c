#include "queue-send/state/message.h"

#include <errno.h>
#include <stdlib.h>

#include "base/io.h"
#include "log/log.h"
#include "queue-send/state/steps.h"
#include "sched/sched.h"
#include "smtp/verp.h"
#include "site/rules.h"

#define NEEDED          512 /* descriptors, of a process with usual limits */
#define REST_MIN        16
#define CLOSED_PER_TURN 256

static int
message_compare(const struct message *a, const struct message *b)
{
	return (a->inode > b->inode) - (a->inode < b->inode);
}

TREE_GENERATE(message_tree, message, link, message_compare)

uint32_t
messages_rest_max(uint64_t descriptors)
{
	const uint64_t n =
	    descriptors > NEEDED ? (descriptors - NEEDED) / 2 : 0;

	return n < REST_MIN         ? REST_MIN
	    : n < MESSAGES_REST_MAX ? (uint32_t)n
				    : MESSAGES_REST_MAX;
}

void
messages_init(struct messages *ms, uint32_t rest_max)
{
	int i;

	*ms = (struct messages){ .rest_max = rest_max };
	RB_INIT(&ms->tree);
	TAILQ_INIT(&ms->resting);
	for (i = 0; i < NSTATES; i++)
		TAILQ_INIT(&ms->list[i]);
}

static void
copy_frame(struct message *m, const struct msg_MESSAGE *frame)
{
	m->inode = frame->inode;
	m->state = frame->dir == SPOOL_INCOMING ? STATE_OFFERED_INCOMING
						: STATE_OFFERED_DEFERRED;
	m->fd = -1;
	m->pending = frame->pending;
	m->hops =
	    (uint16_t)(frame->hops < UINT16_MAX ? frame->hops : UINT16_MAX);
	m->file = message_told_file(frame);
	if (frame->version > 0)
		m->next = m->file.rcpt_off;
	if (frame->sender.len > 0)
		memcpy(m->sender, frame->sender.data, frame->sender.len);
	m->verp = verp_kind(m->sender, frame->sender.len) == VERP_WANTED;
}

static char *
put(char *to, const struct msg_str *from)
{
	if (from->len > 0)
		memcpy(to, from->data, from->len);
	return to + from->len;
}

static struct message_offer *
copy_offer(const struct msg_MESSAGE *frame)
{
	struct message_offer *o =
	    malloc(sizeof(*o) + frame->census.len + frame->destinations.len +
		frame->rcpts.len + frame->message_id.len + 1);
	char *at;

	if (o == NULL)
		return NULL;
	o->census_len = (uint32_t)frame->census.len;
	o->names_len = (uint32_t)frame->destinations.len;
	o->rcpts_len = (uint32_t)frame->rcpts.len;
	o->message_id_len = (uint32_t)frame->message_id.len;
	o->uid = frame->uid;
	at = put(o->bytes, &frame->census);
	at = put(at, &frame->destinations);
	at = put(at, &frame->rcpts);
	at = put(at, &frame->message_id);
	*at = '\0';
	return o;
}

struct message *
messages_add(struct messages *ms, const struct msg_MESSAGE *frame)
{
	struct message *m =
	    calloc(1, offsetof(struct message, sender) + frame->sender.len + 1);

	if (m == NULL)
		return NULL;
	RB_INIT(&m->claims);
	m->offer = copy_offer(frame);
	if (m->offer == NULL) {
		free(m);
		return NULL;
	}
	copy_frame(m, frame);
	RB_INSERT(message_tree, &ms->tree, m);
	TAILQ_INSERT_TAIL(&ms->list[m->state], m, on);
	ms->count[m->state]++;
	return m;
}

struct message *
messages_find(struct messages *ms, uint64_t inode)
{
	struct message key = { .inode = inode };

	return RB_FIND(message_tree, &ms->tree, &key);
}

struct message *
messages_after(struct messages *ms, uint64_t inode)
{
	struct message key = { .inode = inode + 1 };

	return inode == UINT64_MAX ? NULL
				   : RB_NFIND(message_tree, &ms->tree, &key);
}

void
messages_keep_rcpts(
    struct messages *ms, struct message *m, const struct message_offer *offer)
{
	const size_t len = offer->rcpts_len;

	if (len == 0 || len > MESSAGES_RCPTS_MAX - ms->rcpts)
		return;
	m->rcpts = malloc(len);
	if (m->rcpts == NULL)
		return;
	memcpy(
	    m->rcpts, offer->bytes + offer->census_len + offer->names_len, len);
	ms->rcpts += len;
}

static void
drop_rcpts(struct messages *ms, struct message *m)
{
	if (m->rcpts != NULL)
		ms->rcpts -= (size_t)m->file.rcpt_len;
	free(m->rcpts);
}

void
messages_drop(struct messages *ms, struct message *m)
{
	RB_REMOVE(message_tree, &ms->tree, m);
	TAILQ_REMOVE(&ms->list[m->state], m, on);
	ms->count[m->state]--;
	if (message_is_active(m))
		sched_message_free(&m->sched);
	else
		free(m->offer);
	drop_rcpts(ms, m);
	messages_close(ms, m);
	free(m);
}

void
messages_use(struct messages *ms, struct message *m)
{
	if (m->rested_at == 0)
		return;
	TAILQ_REMOVE(&ms->resting, m, resting);
	ms->nresting--;
	m->rested_at = 0;
}

void
messages_close(struct messages *ms, struct message *m)
{
	messages_use(ms, m);
	io_close(&m->fd);
}

void
messages_rest(struct messages *ms, struct message *m, usec_t now)
{
	if (m->fd < 0 || m->rested_at > 0)
		return;
	if (ms->nresting >= ms->rest_max)
		messages_close(ms, TAILQ_FIRST(&ms->resting));
	TAILQ_INSERT_TAIL(&ms->resting, m, resting);
	ms->nresting++;
	m->rested_at = ms->rested_at = now;
}

void
messages_close_resting(struct messages *ms)
{
	struct message *m;

	while ((m = TAILQ_FIRST(&ms->resting)) != NULL)
		messages_close(ms, m);
}

usec_t
messages_end_rest(struct messages *ms, usec_t now)
{
	const usec_t idle_at = ms->rested_at + MESSAGES_REST_IDLE;
	struct message *m;
	usec_t at;
	int n;

	for (n = 0; n < CLOSED_PER_TURN; n++) {
		m = TAILQ_FIRST(&ms->resting);
		if (m == NULL)
			return USEC_NEVER;
		at = m->rested_at + MESSAGES_REST_TIME;
		at = at < idle_at ? at : idle_at;
		if (at > now)
			return at;
		messages_close(ms, m);
	}
	return now;
}

void
message_set_file(struct message *m, const struct queue_file *file)
{
	m->file = *file;
	m->next = file->rcpt_off;
}

struct queue_file
message_told_file(const struct msg_MESSAGE *f)
{
	const uint64_t env_off = QUEUE_FILE_HEADER + f->content_len;

	return (struct queue_file){
		.size = f->size,
		.content_off = QUEUE_FILE_HEADER,
		.content_len = f->content_len,
		.env_off = env_off,
		.env_len = f->env_len,
		.rcpt_off = env_off + f->env_len,
		.rcpt_len = f->rcpt_len,
		.rcpt_count = f->recipients,
		.queue = f->queue,
		.arrival_wall = f->arrival_wall,
		.uid = f->uid,
		.flags = f->flags,
		.nonce = f->nonce,
		.version = f->version,
	};
}

struct message_offer *
messages_activate(struct messages *ms, struct message *m, usec_t now)
{
	struct message_offer *offer = m->offer;

	ASSERT(!message_is_active(m));
	messages_put(ms, m, STATE_ACTIVE);
	m->sched = NULL;
	m->active_mono = now;
	return offer;
}

static void
say_fault(struct messages *ms, const struct message *m, enum message_state to)
{
	char id[QUEUE_ID_SIZE];

	message_id(m, id);
	if (ms->faults++ == 0)
		log_message(LOG_ERROR_L, "fault", id,
		    "ALERT: fault of this program: a message goes from %s to "
		    "%s",
		    message_state_names[m->state], message_state_names[to]);
}

void
messages_put(struct messages *ms, struct message *m, enum message_state state)
{
	if (!message_may_step((enum message_state)m->state, state) ||
	    (state == STATE_FINISHED && m->nunrecorded > 0))
		say_fault(ms, m, state);
	TAILQ_REMOVE(&ms->list[m->state], m, on);
	ms->count[m->state]--;
	m->state = (uint8_t)state;
	TAILQ_INSERT_TAIL(&ms->list[state], m, on);
	ms->count[state]++;
}

struct message *
messages_first(struct messages *ms, enum message_state state)
{
	return TAILQ_FIRST(&ms->list[state]);
}

bool
message_is_active(const struct message *m)
{
	return m->state >= STATE_ACTIVE;
}

enum spool_dir
message_dir(const struct message *m)
{
	static const enum spool_dir dirs[STATE_ACTIVE] = {
		[STATE_OFFERED_INCOMING] = SPOOL_INCOMING,
		[STATE_OFFERED_DEFERRED] = SPOOL_DEFERRED,
		[STATE_ENTERING_INCOMING] = SPOOL_INCOMING,
		[STATE_ENTERING_DEFERRED] = SPOOL_DEFERRED,
	};

	return message_is_active(m) ? SPOOL_ACTIVE : dirs[m->state];
}

uint32_t
messages_to_leave(const struct messages *ms)
{
	return ms->count[STATE_FINISHED] + ms->count[STATE_UNSYNCED] +
	    ms->count[STATE_SYNCING] + ms->count[STATE_UNREPORTED] +
	    ms->count[STATE_REPORTING] + ms->count[STATE_UNMOVED] +
	    ms->count[STATE_LEAVING];
}

struct queue_id
message_queue_id(const struct message *m)
{
	return queue_file_id(&m->file, m->inode);
}

void
message_id(const struct message *m, char out[QUEUE_ID_SIZE])
{
	const struct queue_id id = message_queue_id(m);

	queue_id_format(&id, out);
}

uint32_t
message_hash(const struct message *m)
{
	char id[QUEUE_ID_SIZE];
	uint32_t hash;

	message_id(m, id);
	hash = (uint32_t)site_hash(0, id);
	return hash == 0 ? 1 : hash;
}

void
message_decide(struct message *m, enum message_fate fate)
{
	if (m->fate == FATE_OPEN)
		m->fate = (uint8_t)fate;
}

void
message_fail(struct message *m, int error)
{
	bool damaged = error == -EBADMSG || error == -EPERM;

	if (error >= 0 || m->fate != FATE_OPEN)
		return;
	m->error = error;
	if (damaged)
		m->why = queue_file_reason();
	message_decide(m,
	    damaged                ? FATE_DAMAGED
		: error == -ENOENT ? FATE_VANISHED
				   : FATE_UNREADABLE);
}

bool
message_is(const struct message *m, usec_t arrival_wall, uint8_t nonce)
{
	return m->file.arrival_wall == arrival_wall && m->file.nonce == nonce;
}

bool
message_has_unread(const struct message *m)
{
	return m->fate == FATE_OPEN && m->next_index < m->file.rcpt_count;
}
