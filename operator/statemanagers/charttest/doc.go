// Command charttest tells, before anybody migrates, what the native state manager would make of charts and kustomizations, and in what it
// differs from the tools that people have:
//
//	make test-charts CHARTS=DIR                  all that is in the folder
//	make test-charts CHARTS=DIR ARGS='-run web'  those whose names match
//
// It starts three control planes of its own: one for an operator with package statemanagers, the cluster to which that puts services, and
// one to which Helm's own library puts the same charts, and kustomize's own build and server-side apply the same kustomizations. On the
// latter two the controllers of workloads run, and a node on which pods are ready, or succeed where they are to end
// (operatortest.RunNode): hooks, Jobs and readiness are real, what is in containers is not. Nothing that users have is touched, and
// nothing of the folder is kept.
//
// # The folder
//
// A chart is a folder with a Chart.yaml or an archive (.tgz, .tar.gz), with the charts that it depends on in charts/. A kustomization is a
// folder with a kustomization.yaml; what it refers to is in or below that. Each is there in an old and a new version; with one
// version only there is no upgrade. The folder may say which is which in one of these ways, and mix them:
//
//	old/NAME              and new/NAME
//	NAME/old              and NAME/new
//	NAME-1.2.3            and NAME-1.3.0
//	NAME-1.2.3.tgz        and NAME-1.3.0.tgz
//	NAME/1.2.3            and NAME/1.3.0
//	NAME-1.2.3/NAME       and NAME-1.3.0/NAME, as `helm pull --untar -d NAME-1.2.3` writes them
//
// Of versions without folders old and new, the lower one is the old one. What can't be understood has a row that says so, and why.
//
// Values are beside the charts, in files of this name, later ones over earlier ones:
//
//	NAME.values.yaml or NAME/values.yaml    for both versions
//	old/NAME.values.yaml, NAME-1.2.3.values.yaml and the like    for one version, beside its folder or archive
//
// A release has the name of its chart in the folder, in a namespace of the same name. A kustomization goes to the namespace that it says,
// or else to one of its own name.
//
// # The columns
//
//	INSTALL  The old version, put there by Helm's library or by kustomize, and by the state manager. All objects of both clusters are
//	         compared, with the records of the release: the manifest, the hooks, the values, the chart, the notes, the status.
//	AGAIN    The operator is restarted and looks at everything anew, with nothing in memory. It must write nothing to the cluster, and
//	         not the status, and must be done some seconds later.
//	UPGRADE  The new version takes the place of the old one, and all is compared again, with both revisions of the release.
//	DRIFT    In each object a field is changed by hand that the chart sets, then one object of each kind is deleted. The state manager
//	         (in the mode ContinuousWithDriftDetection) has to put it right, so that nothing differs from Helm's again, and without
//	         another revision. Namespaces, claims of volumes, and definitions of kinds that are in use are not deleted: what is in
//	         them would go too. Replicas are not changed, nor what tells items of lists apart: see package native/carrier.
//	REMOVAL  The service is taken away, and the release uninstalled. What is left has to be the same: no more than Helm leaves.
//
// A cell is "equal", with the number of a line of our documentation where that says what is otherwise; "differs: ", with the first difference,
// all of which stand below the table; or "–" for what was not tried. What both of them refuse is equal, and told below. Where Helm refuses an
// upgrade that the state manager is documented to make, the objects are compared with those of a new installation. The exit code is 0 if all
// cells are equal, 1 if one is not or something was not understood, and 2 if the comparison itself failed (make and go run say 2 and 1
// for any of them).
//
// # What is not compared
//
// Status, managed fields, UIDs and times; addresses and ports that the API server gives a Service; Events, Leases, Endpoints, and objects
// with a controller, such as pods; our labels and annotations, and those of the controllers that count changes (package native/carrier has the
// names of ours); and fields that templates make up anew each time that they are rendered, such as passwords: the notes name these.
// Values of Secrets are compared and not shown.
package main
