package object

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-k8s/trellis/pkg/applyoptions"
	"github.com/trellis-k8s/trellis/pkg/fieldowner"
)

// Manifest is an object to send to the API server.
type Manifest struct {
	Ref
	// Body is the object as EncodeBody writes it.
	Body []byte
	// Initial is sent instead of Body when the object is created; nil if that is Body too.
	Initial []byte
	// Changed is sent instead of Body to a live object whose manifest changed; nil if that is Body too.
	Changed []byte
	// Digest changes with what is sent.
	Digest string
	// Adopted is sent instead to a live object whose pod template has not the managed-by label: setting it would replace all
	// pods. It is nil if that makes no difference.
	Adopted *Manifest
	// Preserve are fields that are not in Body, so that they stay as they are once the object lives.
	Preserve []fieldowner.Pattern
	// Stripped are those of Preserve that the manifest has, and that were taken out of Body.
	Stripped []fieldowner.Pattern
	// OnlyOnChange are those of Preserve that are in Changed if the manifest has them.
	OnlyOnChange []fieldowner.Pattern
	// PreserveIfSet are fields that are in Body, and are taken out of it if the live object has them.
	PreserveIfSet []fieldowner.Pattern
	// Status is the object with nothing but its status, to be applied through the status subresource while the live object waits for it; nil
	// if there is none.
	Status []byte
	// ReplicasFromZero are the replicas that are sent to a live object that has 0: those of the manifest, if they are not in Body because an
	// autoscaler owns them that does not scale from 0. Otherwise, it is nil.
	ReplicasFromZero any
	// Untaken are fields that are not taken over from others.
	Untaken []fieldowner.Pattern
	// Directive is how the object wants to be handled.
	Directive applyoptions.Options
	// Labels of the object.
	Labels map[string]string
	// Annotations of the object as its author wrote them.
	Annotations map[string]string
	// Source says where the object was read, for error messages.
	Source string
	// Defines is set for CustomResourceDefinitions: the kinds that the API server serves because of it.
	Defines []schema.GroupVersionKind
}

// Digest returns 64 bits of the SHA-256 of the parts, each with its length, as 11 characters of URL-safe base64. It reports whether something
// changed; it does not withstand an attacker who may choose both sides.
func Digest(parts ...[]byte) string {
	hash := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(hash, "%d:", len(part))
		hash.Write(part)
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:8])
}
