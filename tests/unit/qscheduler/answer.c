/* Answers to requests whose socket is made anew meanwhile. */
#include "hand.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ipc/names.h"
#include "tests/unit/descriptors.h"

static char instance[32];

static void
open_socket(void)
{
	close(hand.s.requests.socket.fd);
	snprintf(instance, sizeof(instance), "t%ld", (long)getpid());
	hand.s.instance.name = instance;
	cr_assert_eq(
	    ask_socket_open(instance, -1, (gid_t)-1, &hand.s.requests.socket),
	    0);
}

static void
remove_name(void)
{
	char name[IPC_NAME_MAX];

	ipc_name_ask(instance, name);
	cr_assert_eq(shm_unlink(name), 0);
}

static int
connect_asker(struct ask_address *ret_address)
{
	int fd;

	cr_assert_eq(ask_socket_connect(instance, NULL, &fd), 0);
	ret_address->len = sizeof(ret_address->name);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&ret_address->name,
			 &ret_address->len),
	    0);
	return fd;
}

static void
done(void)
{
	requests_close(&hand.s);
	hand_teardown();
}

TestSuite(answer, .init = hand_setup, .fini = done);

/* The kernel lets the socket that a command has connected to answer it, and no
 * other. mutation: publish_answer() takes the socket of now. */
Test(answer, a_request_by_a_socket_that_was_made_anew)
{
	const struct msg msg = { .type = MSG_DISABLE,
		.u.DISABLE = { 4711, 7, 1, 0, MSG_S("new disk") } };
	struct ask_source from = { .pid = 4711 };
	struct sched_answer answer;
	unsigned before;
	int asker;

	open_socket();
	asker = connect_asker(&from.address);
	before = unit_descriptors();
	cr_assert_eq(request_handle(&hand.s, &msg, &from, HAND_NOW), 0);
	cr_assert_eq(hand.s.store.nwaiting, 1);
	remove_name();
	requests_tick(&hand.s);
	cr_assert(ask_socket_is_there(instance, &hand.s.requests.socket));
	hand_pump();
	cr_assert_eq(recv(asker, &answer, sizeof(answer), MSG_DONTWAIT),
	    (ssize_t)sizeof(answer));
	cr_expect_eq(answer.nonce, 7);
	cr_expect_str_eq(answer.text, "queue 1: disabled for ever");
	cr_expect_eq(unit_descriptors(), before, "the old socket is closed");
	close(asker);
}
