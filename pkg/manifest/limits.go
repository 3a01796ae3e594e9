package manifest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// greatestSize is the maximum limit in bytes.
const greatestSize = 1 << 40

// Limits restrict the content of one Secret, so that no content can exhaust the memory of the process.
type Limits struct {
	// Bytes is the total size of the manifests in one Secret after decompression.
	Bytes int64
	// Documents is the number of documents in one Secret, including lists and their items.
	Documents int
	// Depth is the maximum nesting of the fields of one document.
	Depth int
	// Values is the number of fields, items and lines in one Secret, counted by punctuation. Each of them takes far more
	// memory than its bytes.
	Values int
}

// DefaultLimits returns limits far above the content of real Secrets. The API server accepts Secrets of up to 1 MiB,
// etcd accepts requests of up to 1.5 MiB, and real manifests compress by a factor of 10 to 20. The maximum number of
// values takes up to 500 MiB while they are decoded.
func DefaultLimits() Limits {
	return Limits{Bytes: 64 << 20, Documents: 20_000, Depth: 200, Values: 2_000_000}
}

// secretsOfOne is the ratio of the limits of all Secrets of a ManagedResource to those of one Secret.
const secretsOfOne = 4

// Budget is the remaining budget of all Secrets of a ManagedResource together.
type Budget struct {
	limits                   Limits
	bytes, documents, values int64
}

// NewBudget returns the budget of one ManagedResource.
func NewBudget(limits Limits) *Budget {
	return &Budget{
		limits: limits, bytes: secretsOfOne * min(limits.Bytes, greatestSize), documents: int64(secretsOfOne * limits.Documents),
		values: int64(secretsOfOne * limits.Values),
	}
}

// Decode returns the objects in one Secret and deducts its content from the budget. Once the budget is exceeded, it
// returns an error for each further Secret.
func (b *Budget) Decode(secret *corev1.Secret) ([]Document, []error) {
	if min(b.bytes, b.documents, b.values) < 0 {
		return nil, []error{fmt.Errorf("secret '%s/%s' is skipped: the previous Secrets contain more than %d times the limit of one Secret; "+
			"divide the objects among several ManagedResources", secret.Namespace, secret.Name, secretsOfOne)}
	}
	d := newDecoder(secret, b.limits)
	documents, problems := d.decode(secret.Data)
	b.bytes -= d.limits.Bytes - d.bytesLeft + d.wasted
	b.documents -= int64(d.seen)
	b.values -= int64(d.values)
	return documents, problems
}

// valuesIn returns an upper bound for the number of fields, items and lines in a text. They determine the memory of a
// parser: "[[],[],…]" takes more than twenty times its size.
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
