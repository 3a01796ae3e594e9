package tokenrequestor

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxToken is the maximum size of parsed tokens in bytes. Real tokens have about 1 KiB.
const maxToken = 64 << 10

// claims are the times in a token, according to the clock of the API server that issued it, and the UID of its
// ServiceAccount; empty if it has none. They are not verified, because only that API server can verify them.
type claims struct {
	issued, expires time.Time
	account         types.UID
}

// lifetime returns the validity of the token. It is positive.
func (c claims) lifetime() time.Duration { return c.expires.Sub(c.issued) }

// readClaims parses a JSON Web Token. It returns false if the text is not a token, or has no times of issue and expiry.
func readClaims(token string) (claims, bool) {
	if len(token) > maxToken {
		return claims{}, false
	}
	_, rest, _ := strings.Cut(token, ".")
	payload, _, found := strings.Cut(rest, ".")
	if !found {
		return claims{}, false
	}
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return claims{}, false
	}
	var numbers struct {
		IssuedAt int64 `json:"iat"`
		Expires  int64 `json:"exp"`
		Private  struct {
			ServiceAccount struct {
				UID types.UID `json:"uid"`
			} `json:"serviceaccount"`
		} `json:"kubernetes.io"`
	}
	const year9999 = 253402300799
	if json.Unmarshal(text, &numbers) != nil || numbers.IssuedAt <= 0 || numbers.Expires <= numbers.IssuedAt || numbers.Expires > year9999 {
		return claims{}, false
	}
	return claims{
		issued: time.Unix(numbers.IssuedAt, 0), expires: time.Unix(numbers.Expires, 0), account: numbers.Private.ServiceAccount.UID,
	}, true
}
