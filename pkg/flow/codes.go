package flow

import (
	"regexp"
	"slices"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// invalid finds what an API server refuses because of its content.
var invalid = regexp.MustCompile(`(?i)(\bis invalid\b|invalid configuration)`)

// patterns find the code of an error of an infrastructure from its text, as Gardener's extensions do.
var patterns = []struct {
	code    corev1beta1.ErrorCode
	pattern *regexp.Regexp
}{
	{corev1beta1.ErrorInfraUnauthenticated, regexp.MustCompile(
		`(?i)(InvalidAuthenticationToken|InvalidClientTokenId|AuthFailure|invalid_client|invalid client|invalid token|invalid credentials|expired (token|credentials)|ExpiredToken|authentication failed|SignatureDoesNotMatch|\b401\b)`)},
	{corev1beta1.ErrorInfraUnauthorized, regexp.MustCompile(`(?i)(Unauthorized|AccessDenied|access denied|not authorized|AuthorizationFailed|\b403\b)`)},
	{corev1beta1.ErrorInfraQuotaExceeded, regexp.MustCompile(`(?i)(LimitExceeded|quota exceeded|exceeded quota|quota (has been )?met|QuotaExceeded)`)},
	{corev1beta1.ErrorInfraRateLimitsExceeded, regexp.MustCompile(`(?i)(Throttling|too many requests)`)},
	{corev1beta1.ErrorInfraDependencies, regexp.MustCompile(`(?i)(PendingVerification|pending verification|DependencyViolation|dependency violation|resource in use|InUseBy|not registered)`)},
	{corev1beta1.ErrorInfraResourcesDepleted, regexp.MustCompile(`(?i)(out of (capacity|stock)|OutOfStock|insufficient (resources|capacity)|ZoneResourcePoolExhausted)`)},
	{corev1beta1.ErrorConfigurationProblem, invalid},
}

// final are the codes of errors that trying again does not help against.
var final = []corev1beta1.ErrorCode{
	corev1beta1.ErrorInfraUnauthenticated, corev1beta1.ErrorInfraUnauthorized, corev1beta1.ErrorInfraQuotaExceeded,
	corev1beta1.ErrorInfraRateLimitsExceeded, corev1beta1.ErrorInfraDependencies, corev1beta1.ErrorConfigurationProblem,
	corev1beta1.ErrorProblematicWebhook,
}

// throttled is the only limit that is not a quota.
var throttled = regexp.MustCompile(`(?i)RequestLimitExceeded`)

// namedCodes finds codes that a text names: see [ExtensionHealth].
var namedCodes = regexp.MustCompile(`\bERR_[A-Z]+(_[A-Z]+)*\b`)

// CodesIn returns the codes of an error of an infrastructure by its text, in a fixed order. If the text names codes, these are taken as they are.
func CodesIn(text string) []corev1beta1.ErrorCode {
	if named := codesNamedIn(text); len(named) > 0 {
		return named
	}
	text = throttled.ReplaceAllLiteralString(text, "Throttling")
	var codes []corev1beta1.ErrorCode
	for _, known := range patterns {
		if known.pattern.MatchString(text) {
			codes = append(codes, known.code)
		}
	}
	return codes
}

// codesNamedIn returns the codes that a text names, in a fixed order.
func codesNamedIn(text string) []corev1beta1.ErrorCode {
	var codes []corev1beta1.ErrorCode
	for _, code := range namedCodes.FindAllString(text, -1) {
		codes = append(codes, corev1beta1.ErrorCode(code))
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// CodesOfWrite returns the codes of why an object could not be written. No other words count than those of an API server that refuses the content: it also
// answers Unauthorized, Forbidden and Too Many Requests, which are about the flow or the resource-manager, and no error of an infrastructure.
func CodesOfWrite(text string) []corev1beta1.ErrorCode {
	codes := codesNamedIn(text)
	if len(codes) == 0 && invalid.MatchString(text) {
		codes = append(codes, corev1beta1.ErrorConfigurationProblem)
	}
	return codes
}

// codesOf returns the codes of what a ManagedResource reports. Those that its conditions have are taken as they are. What is said of an unhealthy object
// can have any words, as those of a probe that failed with the status code 403: of these only the codes that they name count.
func codesOf(mr *resourcesv1alpha1.ManagedResource) []corev1beta1.ErrorCode {
	var codes []corev1beta1.ErrorCode
	for _, condition := range mr.Status.Conditions {
		for _, code := range condition.Codes {
			codes = append(codes, corev1beta1.ErrorCode(code))
		}
	}
	switch applied := resourcesv1alpha1.ConditionOf(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied); {
	case len(codes) > 0:
	case applied.Status == resourcesv1alpha1.ConditionFalse:
		codes = CodesOfWrite(failing(mr))
	default:
		codes = codesNamedIn(failing(mr))
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

func hasFinal(errs []corev1beta1.LastError) bool {
	return slices.ContainsFunc(errs, func(err corev1beta1.LastError) bool {
		return slices.ContainsFunc(err.Codes, func(code corev1beta1.ErrorCode) bool { return slices.Contains(final, code) })
	})
}
