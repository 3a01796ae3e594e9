// Package gateway and the packages below it are a gateway of the Gateway API for one purpose: it passes TLS connections through to Services, by
// the server name in the TLS handshake (SNI), as TLSRoutes say. It decrypts nothing, and reads no Secrets.
//
// Package opening reads the first bytes of connections, package forward joins connections and limits them, package routing decides which host
// leads to which Service, and package controller watches the objects and writes their status.
package gateway
