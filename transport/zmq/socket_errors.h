#pragma once
// This program's own getsockopt(2), in front of the C library's, for libzmq's sake.
//
// libzmq 4.3.4 asks a socket whose connect() ended for SO_ERROR, and asserts that the answer is none of a few which it
// takes for its own mistakes (tcp_connecter.cpp). ENOPROTOOPT is among them. But Linux reports exactly that for a
// connect that was answered by an ICMP "protocol unreachable" (icmp(7), RFC 1122 4.2.3.9), which whoever is dialled,
// and everybody on the way, can send. One packet would end the process.
//
// A symbol that the program defines comes before those of every shared library in it, so libzmq calls ours. It is the
// system call, but for one answer: of SO_ERROR, ENOPROTOOPT is told as ECONNREFUSED, which is what the other
// unreachable port says too.
//
// Thread: any.   Does not reach a libzmq that is linked statically and hides its calls; asked_by_libraries() tells.

namespace shoal {

// What is told of an error that a socket has met.
int told_socket_error(int error);
// Whether the libraries of this process call our getsockopt.
bool asked_by_libraries();

}  // namespace shoal
