/* qtop/qtop.h - the whole command but main(). Exit codes: 0; 1 nothing to
 * show, or output that cannot be written; 64 usage; 78 configuration. */
#ifndef QTOP_QTOP_H
#define QTOP_QTOP_H

int qtop_main(int argc, char **argv);

#endif
