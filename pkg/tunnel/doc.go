// Package tunnel carries TCP connections from an API server to the nodes, Pods and Services of its cluster, when there are no routes between
// them. An [Agent] runs in the cluster and dials out to each [Server] beside the API server. The API server connects to a server as its egress
// selector of the protocol HTTPConnect says: a request with the method CONNECT for each connection. The server passes it on to an agent, which
// connects to the address.
//
// On the connection between the two, the roles of HTTP/2 are reversed: the agent accepts requests, although it has dialed. Each connection
// of the API server is a stream with a flow control of its own, so that one that is not read does not stop others. Both sides authenticate
// themselves with certificates of an authority that only this cluster has.
package tunnel

import "time"

// protocol is the name of the protocol between server and agent in their TLS handshake (ALPN).
const protocol = "trellis-tunnel/1"

// pathHello is the path of the request with which a server accepts an agent.
const pathHello = "/hello"

// agentHost is the name of the agent in that request.
const agentHost = "agent"

// Limits of connections between server and agent.
const (
	handshakeTimeout = 10 * time.Second
	// A connection on which nothing was received for idleBeforePing is checked; it is closed if no answer comes within pingTimeout.
	idleBeforePing, pingTimeout = 10 * time.Second, 10 * time.Second
	// streamBuffer is how many bytes of a connection are buffered on the receiving side until its peer reads them.
	streamBuffer = 512 << 10
	// connectionBuffer is the same for all of them. It is so large that the limits of the streams are reached before.
	connectionBuffer = 1 << 30
	// streams is how many connections of the API server an agent serves at the same time for each server.
	streams = 10000
)
