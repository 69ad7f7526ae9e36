package docker

// What tests write into containers, and how a proxy is told what to serve.
var (
	WriteFile  = writeFile
	Reload     = reload
	Unanswered = unanswered
)

// RootFile is the certificate of the authority that a proxy is itself.
const RootFile = rootFile
