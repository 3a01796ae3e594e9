// Package nodeagent tests the node agent with a real API server, the real approver and signer of its certificates, the real authorizer of its
// requests, and a machine in a temporary directory with a simulated systemd.
package nodeagent
