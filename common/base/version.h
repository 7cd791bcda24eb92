/* base/version.h - the version that every program shows. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define QSCHED_VERSION "0.1"

#endif
