package docker

// What tests write into containers.
var WriteFile = writeFile

// RootFile is the certificate of the authority that a proxy is itself.
const RootFile = rootFile
