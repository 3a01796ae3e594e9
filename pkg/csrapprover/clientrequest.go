package csrapprover

import certificatesv1 "k8s.io/api/certificates/v1"

// ParseClientRequest returns the common name of a request for a client certificate. flaw is why the request must not be approved;
// it is empty if the certificate would authenticate only the common name, in one group. An empty common name means that the
// requester is unknown, because the request cannot be parsed.
func ParseClientRequest(spec *certificatesv1.CertificateSigningRequestSpec, group string) (commonName, flaw string) {
	content := parse(spec.Request)
	if content.CertificateRequest == nil {
		return "", content.flaw
	}
	_, flaw = flawOfClient(spec, content, group)
	return content.Subject.CommonName, flaw
}
