// The contracts of Wire and Transport over ZeroMQ.
#include "tests/transport/transport_contract.h"
#include "tests/transport/wire_contract.h"
#include "tests/transport/zmq_lab.h"

namespace shoal {

INSTANTIATE_TYPED_TEST_SUITE_P(Zmq, WireContract, ZmqLab);
INSTANTIATE_TYPED_TEST_SUITE_P(Zmq, TransportContract, ZmqLab);

}  // namespace shoal
