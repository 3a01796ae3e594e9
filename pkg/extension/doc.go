// Package extension is a library for extensions. An extension implements an [Actuator] for each kind and type for which
// it is responsible, and adds it to its manager with [AddToManager]. The controller implements the rest of the contract:
// finalizers, the operation annotation, lastOperation and lastError with codes, observedGeneration, retries, and the
// finalizers of referenced Secrets.
//
// Actuators deploy objects to the seed or the shoot with ManagedResources, see package bundles. The packages health,
// heartbeat, webhook, controlplane and validation contain the other parts of an extension. docs/writing-extensions.md
// explains all of them.
package extension
