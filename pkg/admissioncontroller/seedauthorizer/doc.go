// Package seedauthorizer implements the authorization webhooks for gardenlets and extensions of Seeds and of self-hosted Shoots.
//
// rules.go has what each kind permits: some verbs always, others if the graph has a path from the object to the requester's Seed
// or Shoot. decide.go decides. handler.go serves API servers. Other users get no opinion.
package seedauthorizer
