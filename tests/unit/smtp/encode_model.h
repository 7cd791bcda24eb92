/* The encoder of content beside its definition. */
#ifndef TESTS_UNIT_SMTP_ENCODE_MODEL_H
#define TESTS_UNIT_SMTP_ENCODE_MODEL_H

#include "base/buf.h"
#include "smtp/smtp.h"

/* Append what the encoder makes of one slice, in memory of its own. */
void encode_feed(
    struct smtp_encode *e, const char *data, size_t len, struct buf *out);
/* All of the message, in slices, in place of the contents of out. */
void encode_whole(const char *data, size_t len, size_t slice, struct buf *out);
/* By DATA and by BDAT, in slices of many sizes, a server gets the normal form
 * of docs/DELIVERY.md, "Content". */
void encode_check(const char *name, const char *data, size_t len);

#endif
