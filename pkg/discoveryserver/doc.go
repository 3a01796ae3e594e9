// Package discoveryserver is the program that publishes the documents of a garden's issuers of tokens, so that everybody can verify these tokens:
// those of Shoots with the managed issuer, and those of WorkloadIdentities.
package discoveryserver
