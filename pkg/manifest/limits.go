package manifest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// greatestSize is the greatest limit of bytes that makes sense.
const greatestSize = 1 << 40

// Limits bound what one Secret may hold, so that no content can exhaust the process.
type Limits struct {
	// Bytes of all manifests in one Secret after decompression.
	Bytes int64
	// Documents in one Secret, lists and their items included.
	Documents int
	// Depth to which the fields of one document may be nested.
	Depth int
	// Values in one Secret, counted by punctuation: fields, items and lines. Each takes far more memory than its bytes.
	Values int
}

// DefaultLimits are far above what real Secrets hold: the API server takes Secrets of up to 1 MiB, and etcd requests
// of up to 1.5 MiB, which real manifests compress by a factor of 10 to 20. As many values as are allowed take up to 500 MiB
// while they are decoded.
func DefaultLimits() Limits {
	return Limits{Bytes: 64 << 20, Documents: 20_000, Depth: 200, Values: 2_000_000}
}

// secretsOfOne is how much more all Secrets of a ManagedResource may hold than one of them.
const secretsOfOne = 4

// Budget is what is left of what all Secrets of a ManagedResource may hold together.
type Budget struct {
	limits                   Limits
	bytes, documents, values int64
}

// NewBudget returns the full budget of one ManagedResource.
func NewBudget(limits Limits) *Budget {
	return &Budget{
		limits: limits, bytes: secretsOfOne * min(limits.Bytes, greatestSize), documents: int64(secretsOfOne * limits.Documents),
		values: int64(secretsOfOne * limits.Values),
	}
}

// Decode is decodeSecret for one Secret after the other. Once they held too much together, the others are left out.
func (b *Budget) Decode(secret *corev1.Secret) ([]Document, []error) {
	if min(b.bytes, b.documents, b.values) < 0 {
		return nil, []error{fmt.Errorf("secret '%s/%s' is left out: the Secrets before it hold more than %d times what one may; "+
			"divide the objects among several ManagedResources", secret.Namespace, secret.Name, secretsOfOne)}
	}
	d := newDecoder(secret, b.limits)
	documents, problems := d.decode(secret.Data)
	b.bytes -= d.limits.Bytes - d.bytesLeft + d.wasted
	b.documents -= int64(d.seen)
	b.values -= int64(d.values)
	return documents, problems
}

// valuesIn returns how many fields, items and lines a text has at most. A parser's memory grows with them: "[[],[],…]" becomes more than
// twenty times as large.
func valuesIn(content []byte) int {
	count := 0
	for _, char := range content {
		switch char {
		case '\n', '\r', ',', ':', '[', '{', '-', '?':
			count++
		}
	}
	return count
}
