terraform {
  required_providers {
    coder = { source = "coder/coder" }
  }
}
data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}
resource "terraform_data" "home" {
  triggers_replace = "${data.coder_workspace_owner.me.name}-${data.coder_workspace.me.name}"
}
