// Package extension is the library that extensions are written with. An extension implements an [Actuator] for each kind and type that it
// answers, and adds it to its manager with [AddToManager]. The controller does the rest of the contract: finalizers, the operation
// annotation, lastOperation and lastError with codes, observedGeneration, retries, and the finalizers of Secrets that are referred to.
//
// What an actuator deploys into the seed or the shoot goes out in ManagedResources: see the package bundles. The packages health, heartbeat,
// webhook, controlplane and validation have the other parts of an extension. docs/writing-extensions.md leads through all of them.
package extension
