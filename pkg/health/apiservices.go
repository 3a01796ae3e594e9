package health

// checkAPIService returns the verdict on an APIService: its server must be available. Otherwise its kinds cannot be
// used, and no Namespace can be deleted. The condition is missing until kube-apiserver has handled the APIService.
func checkAPIService(service *conditioned) Verdict {
	const available = "Available"
	verdict := Verdict{Unhealthy: required(service.Status.Conditions, available)}
	if find(service.Status.Conditions, available) == nil {
		verdict.Progressing = missing(available)
	}
	return verdict
}
