#include "deliver-smtp/reach/resolve.h"

#include <arpa/nameser.h>
#include <errno.h>
#include <limits.h>
#include <resolv.h>
#include <stdlib.h>
#include <string.h>

#include "deliver-smtp/reach/lookup.h"
#include "deliver-smtp/reach/question.h"

/* Seconds: addresses are known so long where one family did not answer. */
#define TTL_PART 60

struct resolver {
	struct event_base *base;
	struct name_servers servers;
};

struct part { /* one question of a request */
	struct resolve_request *request;
	enum question_kind kind;
	struct question *question;
	int error;
	const char *text;
	size_t count;
	union mx_address addresses[RESOLVE_FAMILY_MAX];
};

#define PARTS_MAX 2

struct resolve_request {
	struct part parts[PARTS_MAX];
	size_t nparts, pending;
	resolve_fn *done;
	void *arg;
	struct resolve_result result;
};

/* ---- one answer ---- */

static void
ttl_note(struct resolve_result *result, int ttl)
{
	if (ttl < result->ttl)
		result->ttl = ttl;
}

static void
address_take(union mx_address *a, bool six, const unsigned char *data)
{
	if (six) {
		a->in6.sin6_family = AF_INET6;
		memcpy(&a->in6.sin6_addr, data, sizeof(a->in6.sin6_addr));
	} else {
		a->in.sin_family = AF_INET;
		memcpy(&a->in.sin_addr, data, sizeof(a->in.sin_addr));
	}
}

/* An alias (CNAME) without an address is an answer without one. */
static int
take_family(struct part *part, const struct question_answer *answer)
{
	const bool six = part->kind == QUESTION_AAAA;
	ns_msg message;
	ns_rr rr;
	int i;

	if (ns_initparse(answer->message, (int)answer->len, &message) < 0)
		return ARES_EBADRESP;
	for (i = 0; i < ns_msg_count(message, ns_s_an) &&
	     part->count < RESOLVE_FAMILY_MAX;
	     i++) {
		if (ns_parserr(&message, ns_s_an, i, &rr) < 0)
			return ARES_EBADRESP;
		ttl_note(&part->request->result,
		    ns_rr_ttl(rr) < INT_MAX ? (int)ns_rr_ttl(rr) : INT_MAX);
		if (ns_rr_type(rr) == (six ? ns_t_aaaa : ns_t_a) &&
		    ns_rr_class(rr) == ns_c_in &&
		    ns_rr_rdlen(rr) == (six ? NS_IN6ADDRSZ : NS_INADDRSZ))
			address_take(&part->addresses[part->count++], six,
			    ns_rr_rdata(rr));
	}
	return part->count > 0 ? ARES_SUCCESS : ARES_ENODATA;
}

static int
take_native(struct part *part, const struct question_answer *answer)
{
	struct resolve_result *result = &part->request->result;
	const struct ares_addrinfo_node *node;
	const struct ares_addrinfo_cname *alias;
	union mx_address *a;

	for (alias = answer->addresses->cnames; alias != NULL;
	     alias = alias->next)
		ttl_note(result, alias->ttl);
	for (node = answer->addresses->nodes; node != NULL;
	     node = node->ai_next) {
		if (result->count == RESOLVE_MAX ||
		    node->ai_addrlen > sizeof(*a))
			continue;
		a = &result->addresses[result->count++];
		memcpy(a, node->ai_addr, node->ai_addrlen);
		ttl_note(result, node->ai_ttl);
	}
	return result->count > 0 ? ARES_SUCCESS : ARES_ENODATA;
}

static int
take_message(struct part *part, const struct question_answer *answer)
{
	part->request->result.answer = answer->message;
	part->request->result.answer_len = answer->len;
	return ARES_SUCCESS;
}

static int (*const takes[QUESTION_NKINDS])(
    struct part *part, const struct question_answer *answer) = {
	[QUESTION_MX] = take_message,
	[QUESTION_A] = take_family,
	[QUESTION_AAAA] = take_family,
	[QUESTION_NATIVE] = take_native,
	[QUESTION_NATIVE_EXACT] = take_native,
};

static void
part_take(struct part *part, const struct question_answer *answer)
{
	int status;

	part->error = answer->error;
	part->text = answer->text;
	if (part->error < 0)
		return;
	status = takes[part->kind](part, answer);
	if (status == ARES_SUCCESS)
		return;
	part->error = status == ARES_ENODATA ? -ENODATA : -EAGAIN;
	part->text =
	    status == ARES_ENODATA ? ares_strerror(status) : "malformed answer";
}

/* ---- the result ---- */

static void
addresses_add(struct resolve_result *result, const struct part *part)
{
	memcpy(&result->addresses[result->count], part->addresses,
	    part->count * sizeof(part->addresses[0]));
	result->count += part->count;
}

/* The host has no address only where both families say so, and does not exist
 * only where both say that. */
static const struct part *
error_choose(const struct part *a, const struct part *b)
{
	if (a->error != -ENOENT && a->error != -ENODATA)
		return a;
	if (b->error != -ENOENT && b->error != -ENODATA)
		return b;
	return a->error == -ENODATA ? a : b;
}

static bool
is_unanswered(const struct part *part)
{
	return part->error == -EAGAIN || part->error == -ENOMEM;
}

static void
families_join(struct resolve_request *request)
{
	struct resolve_result *result = &request->result;
	const struct part *six = &request->parts[0], *four = &request->parts[1];
	const struct part *error;
	bool six_first;

	if (six->count + four->count == 0) {
		error = error_choose(six, four);
		result->error = error->error;
		result->text = error->text;
		return;
	}
	if (is_unanswered(six) || is_unanswered(four))
		ttl_note(result, TTL_PART);
	six_first = six->count > 0 && address_six_first(&six->addresses[0].in6);
	addresses_add(result, six_first ? six : four);
	addresses_add(result, six_first ? four : six);
}

static void
request_free(struct resolve_request *request)
{
	size_t i;

	for (i = 0; i < request->nparts; i++)
		question_cancel(&request->parts[i].question);
	free(request);
}

static void
on_answer(void *arg, const struct question_answer *answer)
{
	struct part *part = arg;
	struct resolve_request *request = part->request;

	part->question = NULL;
	part_take(part, answer);
	if (--request->pending > 0)
		return;
	if (request->nparts == 2) {
		families_join(request);
	} else {
		request->result.error = part->error;
		request->result.text = part->text;
	}
	request->done(request->arg, &request->result);
	request_free(request);
}

/* ---- requests ---- */

int
resolve_start(struct resolver *resolver, enum resolve_by by, const char *name,
    resolve_fn *done, void *arg, struct resolve_request **ret_request)
{
	static const struct {
		size_t count;
		enum question_kind kinds[PARTS_MAX];
	} questions[RESOLVE_NWAYS] = {
		[RESOLVE_DNS] = { 2, { QUESTION_AAAA, QUESTION_A } },
		[RESOLVE_NATIVE] = { 1, { QUESTION_NATIVE } },
		[RESOLVE_NATIVE_EXACT] = { 1, { QUESTION_NATIVE_EXACT } },
		[RESOLVE_MX] = { 1, { QUESTION_MX } },
	};
	struct resolve_request *request = calloc(1, sizeof(*request));
	struct part *part;
	int r = 0;

	if (request == NULL)
		return -ENOMEM;
	request->pending = questions[by].count;
	request->done = done;
	request->arg = arg;
	request->result.ttl = INT_MAX;
	while (r == 0 && request->nparts < request->pending) {
		part = &request->parts[request->nparts];
		part->request = request;
		part->kind = questions[by].kinds[request->nparts++];
		r = question_start(&resolver->servers, resolver->base,
		    part->kind, name, on_answer, part, &part->question);
	}
	if (r < 0)
		request_free(request);
	else
		*ret_request = request;
	return r;
}

void
resolve_cancel(struct resolve_request **request)
{
	struct resolve_request *r = *request;

	*request = NULL;
	if (r != NULL)
		request_free(r);
}

/* ---- the resolver ---- */

int
resolver_new(struct event_base *base, struct resolver **ret_resolver)
{
	struct resolver *r = calloc(1, sizeof(*r));
	int error;

	if (r == NULL)
		return -ENOMEM;
	r->base = base;
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS) {
		free(r);
		return -ENOMEM;
	}
	error = name_servers_load(&r->servers);
	if (error < 0)
		resolver_free(&r);
	else
		*ret_resolver = r;
	return error;
}

int
resolver_reload(struct resolver *resolver)
{
	return name_servers_load(&resolver->servers);
}

void
resolver_free(struct resolver **resolver)
{
	struct resolver *r = *resolver;

	*resolver = NULL;
	if (r == NULL)
		return;
	ares_library_cleanup();
	free(r);
}
