/* The forward file of a user (forward_path), which says where the user's mail
 * goes: members as behind the colon of an alias.
 *
 * The file is opened as the user. Its messages are made as those of an alias
 * are, with a Delivered-To field that names the account, so that each account's
 * file is used once on the way of a message: mail that comes back to the
 * account goes to the mailbox, or fails when it left this host meanwhile. */
#include "deliver-local/expand.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

int
forward_open(const struct child_plan *plan, const struct account *user,
    struct forward *ret, struct verdict *v)
{
	const struct mailbox_values values = { .user = user->name,
		.home = user->home };
	struct buf path = { 0 }, why = { 0 };
	uid_t owner = 0;
	int r = mailbox_path(plan->forward_path, &values, &path);

	if (r == 0)
		r = includes_open_one(
		    plan->private, buf_str(&path), user->uid, &owner, &why);
	if (r >= 0 && owner != user->uid && owner != 0) {
		io_close(&r);
		r = -EPERM;
		(void)buf_add_str(&why, "it belongs to another user");
	}
	if (r >= 0)
		ret->fd = r;
	else if (r != -ENOENT && r != -ENOTDIR)
		verdict_set(v, AGENT_DEFERRED, "4.2.4", "forward file %s: %s",
		    buf_str(&path), why.len > 0 ? buf_str(&why) : strerror(-r));
	snprintf(ret->path, sizeof(ret->path), "%s", buf_str(&path));
	buf_done(&path);
	buf_done(&why);
	return r >= 0 ? 1 : r == -ENOENT || r == -ENOTDIR ? 0 : -1;
}

/* The address of the account in Delivered-To fields, whatever extension and
 * domain the mail has. */
static void
account_address(const struct child_plan *plan, const struct account *user,
    char out[ADDRESS_MAX + 1])
{
	char mydomain[CONF_HOST_SIZE];

	conf_domain(plan->conf, mydomain);
	snprintf(out, ADDRESS_MAX + 1, "%s@%s", user->name, mydomain);
}

/* Was the file of this account used for the message? A process that has become
 * the account reads the header. enum message_loop; -1: *v has the reason. */
static int
find_loop(const struct child_plan *plan, const struct account *user,
    const struct message *m, struct verdict *v)
{
	char address[ADDRESS_MAX + 1];
	struct message as_account = *m;
	int status = 0, r;
	pid_t pid;

	account_address(plan, user, address);
	as_account.recipient = address;
	pid = fork();
	if (pid == 0) {
		if (!plan->private && account_become(user) < 0)
			_exit(EXIT_TEMPORARY);
		r = message_find_loop(&as_account);
		_exit(r < 0 ? EXIT_TEMPORARY : r);
	}
	if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	    WEXITSTATUS(status) <= MESSAGE_WAS_HERE)
		return WEXITSTATUS(status);
	verdict_set(v, AGENT_DEFERRED, "4.3.0",
	    "the header could not be read as user %s", user->name);
	return -1;
}

enum forward_use
forward_deliver(const struct child_plan *plan, const struct account *user,
    struct message *m, struct verdict *v)
{
	const bool expanded =
	    (plan->delivery->flags & QUEUE_FILE_EXPANDED) != 0;
	char address[ADDRESS_MAX + 1];
	struct forward f = { .fd = -1,
		.name = user->name,
		.uid = user->uid,
		.delivered_to = address };
	struct stat st;
	int r;

	if (plan->forward_path == NULL || plan->forward_path[0] == '\0')
		return FORWARD_NONE;
	r = forward_open(plan, user, &f, v);
	if (r <= 0)
		return r < 0 ? FORWARD_USED : FORWARD_NONE;
	/* An empty file directs nothing, as with Postfix. */
	if (fstat(f.fd, &st) == 0 && st.st_size == 0) {
		io_close(&f.fd);
		return FORWARD_NONE;
	}
	r = find_loop(plan, user, m, v);
	if (r == MESSAGE_NO_LOOP) {
		account_address(plan, user, address);
		alias_expand_forward(plan, &f, m, v);
		return FORWARD_USED;
	}
	io_close(&f.fd);
	if (r == MESSAGE_WAS_HERE && expanded)
		return FORWARD_RETURNED;
	if (r > 0)
		verdict_set(v, AGENT_FAILED, "5.4.6",
		    "mail forwarding loop for %s", m->recipient);
	return FORWARD_USED;
}
