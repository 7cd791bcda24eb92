/* spool/door.h - the protocol of queue-drop and its callers (docs/DOOR.md).
 *
 * Standard input is records: u8 type, u32 length (little-endian), that many
 * bytes. Content first, in pieces of any length; one sender; recipients; the
 * end, of length 0, and nothing after it. A caller that wants to know whether
 * the disk answers asks DOOR_READY, of length 0, before the end: the door
 * writes DOOR_IS_READY to standard output when all before it has been taken.
 * Without the end nothing is accepted. Behind the sender, and behind each
 * recipient, what the sender asked of reports may come: u8 RET or NOTIFY, then
 * ENVID or ORCPT (base/dsn.h). Standard output gets the queue id
 * and a line end when the message is accepted, standard error one line that
 * begins with an enhanced status code when it is not. */
#ifndef SPOOL_DOOR_H
#define SPOOL_DOOR_H

#define DOOR_RECORD   5 /* bytes in front of each */

#define DOOR_CONTENT  'C'
#define DOOR_SENDER   'F'
#define DOOR_RCPT     'T'
#define DOOR_END      'E'
#define DOOR_READY    'R' /* behind the last recipient */
#define DOOR_DSN      'M' /* behind the sender */
#define DOOR_RCPT_DSN 'N' /* behind a recipient */

#define DOOR_IS_READY '+'

/* Status codes that are more exact than the exit code. */
#define DOOR_FULL     "4.3.1" /* this queue: another may have room */
#define DOOR_CLOSED   "4.3.2" /* this queue, too */
#define DOOR_SHARE    "4.7.1" /* of this user, in every queue */
#define DOOR_SIZE     "5.3.4"
#define DOOR_COUNT    "5.5.3" /* of recipients */
#define DOOR_NO_RCPT  "5.5.1"
#define DOOR_ADDRESS  "5.1.3"
#define DOOR_STREAM   "5.5.2"
#define DOOR_WISH     "5.5.4"

#endif
