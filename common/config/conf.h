/* config/conf.h - the configuration: one struct, filled from one table.
 *
 * Rank, highest first: environment (QUEUE_BASE and others, where the table
 * names a variable), the file (`-c FILE`, else QSCHED_CONF, else
 * /etc/qscheduler/qscheduler.conf), a control file (queue_base only, beside the
 * configuration file), the default.
 *
 * The table (param.c, rows in param.def) makes the reader, --dump, the sample
 * file and the manual page; names are those of the scheduler documents, so
 * every default_X has a per-transport override TRANSPORT_X.
 *
 * File: `name = value`, one a line; `#` at the start of a line or behind a
 * blank begins a comment; no continuation. Blanks around name and value do not
 * count; CRLF and a missing last newline are accepted; a NUL,
 * a byte-order mark, a line above CONF_LINE_MAX, an unknown or repeated name
 * are errors. The whole file is read before it is parsed, and root refuses a
 * file that others may change (base/file.h).
 *
 * Soft: -errno with the text in *ret_error: "FILE:LINE: NAME: what is wrong",
 * "environment VARIABLE: what is wrong".
 * Never logs. A struct conf owns its strings; conf_done() frees them.
 */
#ifndef CONFIG_CONF_H
#define CONFIG_CONF_H

#include "base/buf.h"
#include "route/tls_policy.h"
#include "sched/params.h"
#include "site/params.h"

#include <stdio.h>

#define CONF_DEFAULT_FILE          "/etc/qscheduler/qscheduler.conf"
#define CONF_FILE_MAX              (1024 * 1024)
#define CONF_LINE_MAX              4096
/* Transports of the parameter `transports`, and behind them the transport of
 * aliases, which is always there. */
#define CONF_TRANSPORTS_LISTED_MAX 32
#define CONF_TRANSPORTS_MAX        (CONF_TRANSPORTS_LISTED_MAX + 1)
/* The limit of queue_max; the page of /qscheduler has as many rows
 * (ipc/page.h). */
#define CONF_QUEUES_MAX            256
/* QUEUE_NUM_MAX of spool/id.h is the same. */
#define CONF_QUEUE_NUM_MAX         4095

/* The programs that deliver. */
enum agent_program {
	AGENT_PROGRAM_LOCAL,
	AGENT_PROGRAM_SMTP,
	AGENT_NPROGRAMS,
};
extern const char *const agent_program_names[AGENT_NPROGRAMS];

/* The kinds of transports; agent_kinds[] has the program of each. */
enum agent_kind {
	AGENT_SMTP,
	AGENT_LMTP,
	AGENT_LOCAL,   /* a maildir */
	AGENT_PIPE,    /* a program of programs_file */
	AGENT_DISCARD, /* delivered, to nowhere */
	AGENT_ERROR,   /* refused; nexthop is the reason */
	AGENT_ALIAS,   /* expanded (docs/ALIASES.md); of one transport */
	AGENT_NKINDS,
};
extern const struct agent_kind_row {
	const char *name;
	enum agent_program program;
	bool content; /* the program reads the content */
} agent_kinds[AGENT_NKINDS];

/* An address to connect from; "": the kernel chooses. */
struct conf_bind {
	char text[46]; /* INET6_ADDRSTRLEN */
};

/* A name for EHLO; "": smtp_helo_name. */
struct conf_helo {
	char name[256];
};

/* How the addresses of a host are looked up, in this order. */
enum conf_host_lookup {
	CONF_LOOKUP_DNS,    /* this very name */
	CONF_LOOKUP_NATIVE, /* /etc/hosts, then DNS with the search list */
	CONF_LOOKUP_DNS_NATIVE,
	CONF_LOOKUP_NATIVE_DNS,
	CONF_NLOOKUPS,
};

/* Next hops between blanks or commas; "": none. */
#define CONF_FALLBACK_SIZE 512
struct conf_fallback {
	char text[CONF_FALLBACK_SIZE];
};

/* Content of 8 bit for a server that does not offer 8BITMIME. */
enum conf_eight {
	CONF_EIGHT_CONVERT, /* to quoted-printable */
	CONF_EIGHT_REFUSE,
	CONF_EIGHT_AS_IS,
	CONF_NEIGHTS,
};

/* One transport: its name, its agent, and every per-transport parameter
 * with the override already applied. */
struct conf_transport {
	char *name;
	enum agent_kind kind;
	struct site_params site;
	struct sched_transport_params sched;
	bool domain_literals; /* user@[192.0.2.1] makes a next hop */
	bool mx_lookup;       /* a next hop without brackets is a domain */
	uint32_t host_lookup; /* enum conf_host_lookup */
	struct conf_fallback fallback_relay;
	bool mx_rollup; /* domains of the same MX hosts are one site */
	struct conf_bind bind_address, bind_address6;
	struct conf_helo helo;
	uint32_t tls_level;    /* enum tls_level */
	bool tls_wrappermode;  /* without STARTTLS */
	uint32_t eight;        /* enum conf_eight */
	bool chunking;         /* BDAT where it is offered */
	uint32_t ehlo_ignored; /* bits of smtp_keyword_find() */
};

#define CONF_READERS_ALL "everyone"

struct conf {
	/* queues */
	char *queue_base;
	char *queue_mode; /* static | dynamic */
	uint32_t queue_start, queue_count, queue_max;
	uint32_t queue_load_pct;
	uint32_t queue_split;
	usec_t queue_grow_time, queue_shrink_time; /* growth and shrinking */
	usec_t queue_change_interval, queue_drain_time;
	usec_t error_interval;
	char *instance; /* QSCHED_INSTANCE; "" is the nameless one */
	/* users; ignored unless started as root */
	char *qmailq_user, *qmails_user, *qmailr_user, *qmail_group;
	char *qdrop_group;
	char *operator_group; /* "": none */
	char *reader_group;   /* "": none; CONF_READERS_ALL */
	/* submission */
	uint64_t message_size_limit;
	uint64_t process_memory_limit;
	uint32_t message_recipient_limit;
	uint64_t queue_minfree_bytes, queue_minfree_inodes;
	bool strict_sync;
	uint32_t user_message_limit, user_inode_limit; /* 0: none, as below */
	uint64_t user_size_limit;
	uint32_t user_message_rate, user_process_limit;
	char *trusted_users;
	char *myhostname; /* "" : gethostname() */
	char *mydomain;   /* put behind addresses without one; "": myhostname */
	char *mydestination; /* conf_destinations() */
	char *relayhost;     /* "": none */
	/* preparation */
	char *sender_dependent_relayhost; /* a file; "": none */
	char *sender_rewrite;             /* the same */
	char *routing_file, *programs_file, *alias_file;
	char *admin_recipient; /* of root and postmaster; "": a mailbox */
	usec_t scan_interval;
	/* scheduling, queue runs */
	uint32_t destination_active_share_pct;
	struct sched_params sched;
	struct site_backoff backoff;
	usec_t maximal_queue_lifetime, bounce_queue_lifetime;
	/* reports */
	usec_t delay_warning_time;
	uint32_t report_rate_limit;    /* 0: none */
	uint64_t bounce_size_limit;    /* 0: the header alone */
	char *double_bounce_recipient; /* "": none */
	usec_t in_flow_delay;
	usec_t mark_sync_interval; /* 0: left to the kernel */
	bool destination_concurrency_feedback_debug;
	uint32_t destination_table_size;
	struct conf_transport transports[CONF_TRANSPORTS_MAX];
	uint32_t ntransports;
	/* delivery */
	char *maildir_path;          /* %u user, %d domain, %h home directory */
	char *maildir_user;          /* "": the recipient's own */
	char *forward_path;          /* "": none; as maildir_path */
	uint64_t mailbox_size_limit; /* octets of a mailbox; 0: no limit */
	uint32_t local_account_share; /* percent of process_limit */
	uint32_t alias_expansion_limit;
	char *default_privs; /* of programs in aliases of root */
	uint32_t hopcount_limit;
	usec_t command_time_limit, maildir_time_limit;
	usec_t maildir_process_idle_time;
	usec_t smtp_connect_timeout, smtp_connect_all_timeout;
	usec_t smtp_connect_head_start; /* 0: one address after the other */
	usec_t smtp_before_mail_timeout;
	uint32_t smtp_mx_address_limit; /* 0: none */
	bool smtp_randomize_addresses, smtp_balance_inet_protocols;
	usec_t
	    smtp_greeting_timeout; /* RFC 5321 section 4.5.3.2, as all below */
	usec_t smtp_helo_timeout, smtp_mail_timeout, smtp_rcpt_timeout;
	usec_t smtp_data_init_timeout, smtp_data_xfer_timeout,
	    smtp_data_done_timeout, smtp_quit_timeout,
	    smtp_connection_cache_time_limit, smtp_connection_reuse_time_limit,
	    smtp_connection_turn_time;
	uint32_t smtp_ungreeted_share;
	usec_t smtp_ungreeted_time; /* 0: none */
	uint32_t smtp_connection_reuse_count_limit;
	uint32_t smtp_mx_session_limit; /* of a delivery; 0: no limit */
	usec_t smtp_starttls_timeout;
	char *smtp_tls_CAfile;      /* "": none */
	char *smtp_tls_policy_file; /* "": none */
	char *smtp_password_file;   /* "": none */
	bool smtp_auth_in_clear, smtp_auth_soft_bounce;
	uint32_t smtp_sasl_mechanism_filter; /* enum smtp_auth: allowed */
	char *smtp_helo_name;                /* "": myhostname */
	/* supervision */
	usec_t stop_time_limit;   /* from TERM to KILL */
	usec_t program_stop_time; /* at a stop, until programs get TERM */
	usec_t restart_delay_max, quarantine_delay_max;
	usec_t heartbeat_time_limit;
	usec_t disk_time_limit;
	char *program_dir; /* where the children's programs lie */
	/* log */
	char *log_target; /* stderr | syslog */
	char *log_format; /* text | json */
	char *log_level;  /* debug | info | warning | error */
	/* private to common/config */
	struct conf_origins *origins;
};

/* The instance that a tool is to use: `given` (option -i; NULL: none), else
 * QSCHED_INSTANCE, else that of the configuration. The configuration is read in
 * the last case, and whenever a path is given, so that a wrong file is
 * reported: 1, with the text in ret_error, when the configuration in force took
 * its place. ret_instance is replaced. */
int conf_instance(const char *given, const char *path, struct buf *ret_instance,
    struct buf *ret_error);

/* queue_base of that instance, by the configuration that a tool reads. Empty:
 * the configuration is another instance's, or cannot be read. ret_base is
 * replaced. -ENOMEM. */
int conf_instance_base(
    const char *path, const char *instance, struct buf *ret_base);

/* The origin of a value, for --dump. */
enum conf_source {
	CONF_FROM_DEFAULT,
	CONF_FROM_CONTROL,
	CONF_FROM_FILE,
	CONF_FROM_ENV,
};

/* Read everything. path NULL: QSCHED_CONF or the default; the default file may
 * be absent, a named file may not. On failure *ret_conf is untouched. */
int conf_load(const char *path, struct conf *ret_conf, struct buf *ret_error);
/* conf_load() that tells each wrong line of the file, as base/wrong_lines.h
 * does; *ret_errors is empty before. */
int conf_judge(const char *path, struct conf *ret_conf, struct buf *ret_errors);
/* conf_load(), and if it fails the configuration that was last in force:
 * QUEUE_BASE/conf, which the supervisor writes and which stays when it ends. So
 * an error in the operator's file stops neither submission nor a restart.
 *
 * 0: the file is right. 1: *ret_conf is the configuration in force, conf_path()
 * is its path, and *ret_error says what is wrong with the file; the caller
 * reports that once. -errno: there is no configuration in force either;
 * *ret_error as of conf_load().
 *
 * QUEUE_BASE comes from the environment; else from the file; else from the
 * control file; else it is the default. A file that cannot be read, or whose
 * queue_base is wrong, set twice or perhaps mistyped, names no QUEUE_BASE: the
 * call fails. QUEUE_BASE and conf are trusted when they belong to root or to
 * this user, no other user may write them, and conf names the QUEUE_BASE that
 * it lies in. */
int conf_load_in_force(
    const char *path, struct conf *ret_conf, struct buf *ret_error);
/* The configuration in force alone, whatever the file says. -errno. */
int conf_load_last(const char *path, struct conf *ret_conf);
/* In front of a maildir_path that is a mailbox of one file. */
#define CONF_MBOX_PREFIX   "mbox:"
#define CONF_IN_FORCE_NAME "conf"
/* The one in force in this directory. -EXDEV: a copy of an instance, whose
 * configuration names the original. */
int conf_load_base(const char *base, struct conf *ret_conf);
/* A program of this installation: in program_dir, else beside this program or
 * where an installation has it. path has PATH_MAX bytes. -ENOENT. */
int conf_find_program(const struct conf *conf, const char *name, char *path);
/* conf_load() of settings in memory, on top of the defaults: no file and no
 * environment is read. path names their origin in errors. */
struct conf_setting {
	const char *name, *value;
	uint32_t line; /* of path */
};
int conf_from_settings(const char *path, const struct conf_setting *settings,
    size_t count, struct conf *ret_conf, struct buf *ret_error);
void conf_done(struct conf *conf);
/* conf_done() and free(); NULL is accepted. */
void conf_free(struct conf **conf);

/* `name = value  # origin`, in the order of the table, then the overrides of
 * transports. */
int conf_dump(const struct conf *conf, FILE *out);
/* The sample file and the list of the manual page (man macros), both from the
 * table. */
int conf_sample(FILE *out);
int conf_manual(FILE *out);
/* The path of the file that was read, or of the default file if it is absent.
 */
const char *conf_path(const struct conf *conf);
/* Names the parameter in an error about the file of that parameter. An error
 * that begins with "PATH: " gets "FILE:LINE: NAME: " of the parameter in front;
 * an error about a line of the file stays as it is. If the file is not there,
 * the remedy is appended. -ENOMEM. */
int conf_name_file(const struct conf *conf, struct buf *error);
/* The names of parameters that differ and that a reload cannot change, joined
 * by blanks; "" if none. */
int conf_frozen_changes(
    const struct conf *old, const struct conf *new, struct buf *out);

/* Put the old values of those parameters into the fresh configuration. The list
 * of transports stays the old one; each takes its limits from the fresh
 * transport of its name, if there is one. -ENOMEM: fresh can only be given to
 * conf_done(). */
int conf_keep_frozen(const struct conf *old, struct conf *fresh);

/* Names of the transports, ended by NULL, for route_load(). They live as long
 * as conf. */
void conf_transport_names(
    const struct conf *conf, const char *names[CONF_TRANSPORTS_MAX + 1]);
/* myhostname, else the name of the system, else localhost. */
#define CONF_HOST_SIZE 256
void conf_host(const struct conf *conf, char out[CONF_HOST_SIZE]);
/* mydomain, else the name of the host. */
void conf_domain(const struct conf *conf, char out[CONF_HOST_SIZE]);
/* The domains of mydestination with blanks between, $myhostname and $mydomain
 * as they are now; `*` for every domain. -ENOMEM. */
int conf_destinations(const struct conf *conf, struct buf *out);
/* The instance is of an ordinary user, by the owner of its queue_base; one that
 * was never started would be of this user. */
bool conf_is_private(const struct conf *conf);
/* Every name has a mailbox: no account is needed for one. */
bool conf_has_mailbox_for_all(const struct conf *conf, bool private);
/* deliver-local has a mailbox for this address, as far as the accounts of the
 * system say; names of the administrator have one without an account. */
bool
conf_has_account(const struct conf *conf, bool private, const char *address);
/* The parameter was set, by whatever means. */
bool conf_is_set(const struct conf *conf, const char *name);
/* Adds a line for each parameter that is set and does nothing, as far as its
 * transports tell: "FILE:LINE: NAME: does nothing: why". -ENOMEM. */
int conf_idle(const struct conf *conf, struct buf *out);
/* The rules of its destinations: `site` of the transport, but of local
 * mail no account has more than its share of the slots. */
void conf_site_params(const struct conf *conf, uint32_t transport,
    struct site_params *ret_params);
/* -1 if there is none. */
int conf_transport_find(const struct conf *conf, const char *name);

#endif
