package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Checksum returns the SHA-256 of the data of all Secrets, in their order, in lower-case hex.
func Checksum(secrets []*corev1.Secret) string {
	hash := sha256.New()
	for _, secret := range secrets {
		for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
			fmt.Fprintf(hash, "%d:%s%d:", len(key), key, len(secret.Data[key]))
			hash.Write(secret.Data[key])
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}
