// Package fetch gets what a ServiceTemplate names: Helm charts from OCI registries and chart repositories, folders of
// files from OCI artifacts, web servers, ConfigMaps and Secrets, and both from commits of Git.
//
//	fetcher, err := fetch.New(fetch.Config{Folder: "/var/cache/charts"})
//	…
//	credentials, err := fetch.CredentialsFromSecret(secret) // fetch.Credentials{} without a Secret
//	…
//	chart, err := fetcher.Chart(ctx, *template.Spec.Helm, credentials)
//	if fetch.Permanent(err) {
//		return framework.Permanent(err) // waits for another template or another Secret
//	}
//	release.Run(chart.Chart, values)
//
// # What is trusted, and for how long
//
// What a template pins by its digest is fetched once and then taken from the cache, without asking anybody. The digest of
// something in an OCI registry is that of its manifest, which `helm push`, `flux push` and `oras push` print; anywhere
// else it is that of the archive.
//
// What is not pinned is trusted for Config.Trust. After that the registry or server is asked whether it is still the same
// (HEAD of the tag, If-None-Match for the index and for archives) and only what has changed is fetched again. So a tag
// that is moved is noticed after at most Config.Trust, and Chart.Digest tells. While nobody can be reached, what is in the
// cache is used further; a clear answer, like a refusal or that the chart is gone, is an error.
//
// What is in Git is trusted in the same way: a commit for ever, a branch or a tag for Config.Trust. Chart.Digest is "git:" and the commit.
//
// # Signatures
//
// A template with verify takes from an OCI registry only what one of its keys has signed, as `cosign sign --key` does (Config.Cosign). That is
// checked before anything of it is fetched, and again when the tag has moved. It is beside the OpenPGP provenance of charts, which a keyring in
// the Secret asks for.
//
// # Untrusted input
//
// Registries, repositories and archives are taken for hostile. Limits bound what is read, unpacked and followed. An
// archive is read into memory and consists of regular files: links, devices, absolute paths, paths with "..", two files
// with one name, and a file that is also a folder are errors, and nothing is ever written below a name of an archive.
// Charts within charts count towards the same limits.
//
// Plain HTTP is used for addresses that begin with http:// and for OCI registries on this machine that don't speak TLS.
// A redirect from https:// to http:// is refused.
//
// # Credentials
//
// The keys of a Secret are those of Kubernetes' own types:
//
//	username, password    basic authentication (kubernetes.io/basic-auth); for Git a user and an access token
//	token                 a bearer token
//	.dockerconfigjson     logins of OCI registries (kubernetes.io/dockerconfigjson)
//	tls.crt, tls.key      a client certificate (kubernetes.io/tls)
//	ca.crt                certificates to trust, next to those of the system
//	keyring               OpenPGP public keys; a chart that is fetched with it has to be signed by one of them
//
// There is at most one of username, token and .dockerconfigjson. Credentials go to the scheme, host and port of the
// template's address only: not to where a redirect leads, and not to where an index.yaml has its charts. (An OCI registry
// may name the server that changes a password for a token, as the distribution specification has it.) They are in no
// error and in no log, and whoever has other credentials, or none, does not get from the cache what they gave access to.
//
// # The cache
//
// A folder holds the archives by their digests, which are verified at every read, and small files that say what a name
// stands for. Names of the latter are hashes in which the credentials take part; the folders are made for their owner
// only. What has not been used for the longest time is removed beyond Config.Bytes. Files are written aside and renamed,
// and several processes may share a folder. Callers that want the same thing at the same time share one request.
package fetch
