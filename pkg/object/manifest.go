package object

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
)

// Manifest is an object to be sent to the API server.
type Manifest struct {
	Ref
	// Body is the object as encoded by EncodeBody.
	Body []byte
	// Initial is sent instead of Body to create the object. It is nil if Body is used.
	Initial []byte
	// Changed is sent instead of Body to a live object whose manifest has changed. It is nil if Body is used.
	Changed []byte
	// Digest changes when the sent content changes.
	Digest string
	// Adopted is used instead of this manifest for a live object whose pod template does not have the managed-by label,
	// because setting the label would replace all Pods. It is nil if there is no difference.
	Adopted *Manifest
	// Preserve are fields that are omitted from Body, so that they stay unchanged in a live object.
	Preserve []fieldowner.Pattern
	// Stripped are the Preserve fields that were in the manifest and were removed from Body.
	Stripped []fieldowner.Pattern
	// OnlyOnChange are the Preserve fields that are in Changed if they are in the manifest.
	OnlyOnChange []fieldowner.Pattern
	// PreserveIfSet are fields in Body that are removed from it if the live object has them.
	PreserveIfSet []fieldowner.Pattern
	// Status is the object with only its status, which is applied through the status subresource while the live object
	// waits for it. It is nil if there is none.
	Status []byte
	// ReplicasFromZero are the replicas of the manifest if they are omitted from Body because an autoscaler owns them that
	// does not scale from 0. They are sent to a live object that has 0 replicas. Otherwise, it is nil.
	ReplicasFromZero any
	// Untaken are fields that are not taken over from other owners.
	Untaken []fieldowner.Pattern
	// Directive controls how the object is handled.
	Directive applyoptions.Options
	// Labels of the object.
	Labels map[string]string
	// Annotations of the object in the manifest.
	Annotations map[string]string
	// Source is the location of the manifest, for error messages.
	Source string
	// Defines are the kinds that a CustomResourceDefinition defines.
	Defines []schema.GroupVersionKind
}

// Digest returns 64 bits of the SHA-256 of the parts, each with its length, as 11 characters of URL-safe base64. It is
// meant to detect changes. It is not collision-resistant against an attacker who controls both inputs.
func Digest(parts ...[]byte) string {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d:", len(part))
		hash.Write(part)
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:8])
}
