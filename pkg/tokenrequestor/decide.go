package tokenrequestor

import (
	"time"
)

const (
	// longestUse limits the age of a token, regardless of its validity (the concept document, "TokenRequestor").
	longestUse = 24 * time.Hour
	// renewalShare is the share of a lifetime after which a token is renewed.
	renewalShare = 0.8
	// renewalJitter is the share of that time by which renewals are spread.
	renewalJitter = 0.05
	// lastShare is the share of a token's lifetime after which it is renewed regardless of the annotation: another client, or a
	// replica with another clock, may have written it.
	lastShare = 0.9
	// shortestWait limits the rate of requests to an API server that issues tokens for seconds.
	shortestWait = time.Minute
	// trial is how long a rejected new token is not replaced: the API server would also reject the next one.
	trial = 10 * time.Minute
)

// Why a token is requested; the values of a label of metrics.
const (
	reasonNone           = ""
	reasonNoTimestamp    = "NoTimestamp"
	reasonTargetMissing  = "TargetMissing"
	reasonNoToken        = "NoToken"
	reasonBundleChanged  = "BundleChanged"
	reasonAccountCreated = "ServiceAccountCreated"
	reasonDue            = "Due"
	reasonRejected       = "Rejected"
)

// condition is the known state of the current token.
type condition struct {
	// timestamp is the annotation with the time of the renewal.
	timestamp string
	// targetMissing is set if the Secret of the target cluster that should contain it does not exist.
	targetMissing bool
	token         string
	// bundleDiffers is set if a CA bundle is requested and the stored one differs.
	bundleDiffers bool
	// accountCreated is set if the ServiceAccount has just been created: tokens of one before are not valid.
	accountCreated bool
}

// reasonToRenew returns why a new token must be requested now, by the clock of the API server. Next is the time of the renewal, if that
// is not now. An unreadable timestamp is treated as missing.
func reasonToRenew(c condition, now time.Time) (reason string, next time.Time) {
	renew, err := time.Parse(time.RFC3339, c.timestamp)
	if own, ok := readClaims(c.token); ok {
		if last := own.issued.Add(time.Duration(lastShare * float64(own.lifetime()))); last.Before(renew) {
			renew = last
		}
	}
	switch {
	case err != nil:
		return reasonNoTimestamp, time.Time{}
	case c.targetMissing:
		return reasonTargetMissing, time.Time{}
	case c.token == "":
		return reasonNoToken, time.Time{}
	case c.bundleDiffers:
		return reasonBundleChanged, time.Time{}
	case c.accountCreated:
		return reasonAccountCreated, time.Time{}
	case !now.Before(renew):
		return reasonDue, time.Time{}
	}
	return reasonNone, renew
}

// renewalAfter returns the time until the renewal of a new token with the given lifetime. Random is in [0, 1).
func renewalAfter(lifetime time.Duration, random float64) time.Duration {
	used := renewalShare * float64(min(lifetime, longestUse))
	return time.Duration(used * (1 + renewalJitter*random))
}

// mayReplaceRejected reports whether a rejected token is replaced, given when the last one was requested, by the
// same clock; zero if none was requested.
func mayReplaceRejected(requested, now time.Time) bool {
	return requested.IsZero() || now.Sub(requested) >= trial
}
